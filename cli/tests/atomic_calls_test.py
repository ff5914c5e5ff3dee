# SPDX-License-Identifier: Apache-2.0
"""Atomic operations as calls, with the runtime of a library that is preloaded, and without one."""

import json
import subprocess
from pathlib import Path

import pytest
from store_instrumentation_test import FLAGS, LEVELS, ROOT, compile, plugin
from tombolo import compilers

__all__ = ["plugin"]  # a fixture

# Each operation prints its result; `same` says that a compiler without the plugin prints the same.
OPERATIONS = """
#include <atomic>
#include <cstdio>
#include <cstdint>
#include <thread>
template <class T> T value(long v) { return static_cast<T>(v); }
template <class T> void show(const char* name, T v) { std::printf("%s %.17g\\n", name, static_cast<double>(v)); }
template <class T> std::atomic<T> shared{T(100)};
template <class T> void integers() {
  auto& a = shared<T>;
  show("load", a.load(std::memory_order_acquire));
  a.store(value<T>(-7), std::memory_order_release);
  show("exchange", a.exchange(value<T>(90)));
  show("add", a.fetch_add(value<T>(200)));
  show("sub", a.fetch_sub(value<T>(3)));
  show("and", a.fetch_and(value<T>(0x7b)));
  show("or", a.fetch_or(value<T>(0x84)));
  show("xor", a.fetch_xor(value<T>(0x55)));
  show("nand", __atomic_fetch_nand(reinterpret_cast<T*>(&a), value<T>(0x3c), __ATOMIC_SEQ_CST));
  show("max", __atomic_fetch_max(reinterpret_cast<T*>(&a), value<T>(-2), __ATOMIC_SEQ_CST));
  show("min", __atomic_fetch_min(reinterpret_cast<T*>(&a), value<T>(-5), __ATOMIC_SEQ_CST));
  T expected = value<T>(1);
  show("fails", a.compare_exchange_strong(expected, value<T>(2)) ? 1 : 0);
  show("found", expected);
  while (!a.compare_exchange_weak(expected, value<T>(2), std::memory_order_acq_rel, std::memory_order_relaxed)) {}
  show("at the end", a.load());
}
int main() {
  integers<std::int8_t>(); integers<std::uint8_t>(); integers<std::int16_t>(); integers<std::uint16_t>();
  integers<std::int32_t>(); integers<std::uint32_t>(); integers<std::int64_t>(); integers<std::uint64_t>();
  static std::atomic<double> d{1.5}; static std::atomic<float> f{2.5f};
  static std::atomic<int*> p{nullptr}; static std::atomic<bool> b{false}; static int numbers[4];
  d.store(d.load() + 1); show("double", d.exchange(7.25)); show("float", f.load());
  double seven = 7.25; show("double", d.compare_exchange_strong(seven, 8.5) ? 1 : 0); show("double", d.load());
  p = numbers; p.fetch_add(2); show("pointer", p.load() - numbers);
  show("bool", b.exchange(true) ? 1 : 0); show("bool", b.load() ? 1 : 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  static std::atomic<long> count{0};
  auto add = [] { for (int i = 0; i < 10000; ++i) count.fetch_add(1, std::memory_order_relaxed); };
  std::thread one(add), two(add); one.join(); two.join();
  show("count", count.load());
}
"""
RUNTIME = """
#include <stdio.h>
#include "dsm/compiler/runtime_calls.h"
static long calls[6]; static const struct tombolo_dsm_module* module;
static void count_record(const void* address, size_t bytes) { (void)address; calls[0] += (long)bytes; }
static uint64_t load(const void* p, size_t n, int order) {
  ++calls[1]; (void)order; uint64_t v = 0;
  __builtin_memcpy(&v, p, n); return v; }
static void store(void* p, size_t n, uint64_t v, int order) { ++calls[2]; (void)order; __builtin_memcpy(p, &v, n); }
static uint64_t update(void* p, size_t n, enum tombolo_dsm_update u, uint64_t v, int order) {
  ++calls[3]; (void)order; uint64_t old = load(p, n, 0); --calls[1];
  if (u == tombolo_dsm_add) v += old;
  __builtin_memcpy(p, &v, n); return old; }
static uint64_t exchange(void* p, size_t n, uint64_t expected, uint64_t v, int success, int failure) {
  ++calls[4]; (void)success; (void)failure; uint64_t old = load(p, n, 0); --calls[1];
  if (old == expected) __builtin_memcpy(p, &v, n);
  return old; }
static void fence(int order) { ++calls[5]; (void)order; }
static const struct tombolo_dsm_runtime table = {count_record, load, store, update, exchange, fence};
const struct tombolo_dsm_runtime* tombolo_dsm_attach(const struct tombolo_dsm_module* m) {
  module = m; *m->in_span() = 1; return m->version == tombolo_dsm_calls_version ? &table : 0; }
void tombolo_dsm_detach(const struct tombolo_dsm_module* m) {
  fprintf(stderr, "%s%d: recorded %ld, load %ld, store %ld, update %ld, exchange %ld, fence %ld\\n",
    m == module ? "" : "another module ", m->version, calls[0], calls[1], calls[2], calls[3], calls[4], calls[5]); }
"""


def built(compiler: str, text: str, folder: Path, *arguments: str, instrumented: bool = True) -> Path:
    suffix = "cpp" if compiler == "clang++" else "c"
    source, program = folder / f"program.{suffix}", folder / f"program{len(arguments)}{instrumented:d}"
    source.write_text(text)
    compile(compiler, source, program, [*FLAGS, *arguments], instrumented)
    return program


def output(program: Path, **environment: str) -> tuple[str, str]:
    done = subprocess.run([program], capture_output=True, text=True, env=environment or None, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_operations_have_the_results_of_the_processor(plugin, tmp_path):
    right, _ = output(built("clang++", OPERATIONS, tmp_path, "-std=c++20", "-O1", instrumented=False))
    for level in LEVELS:
        program = built("clang++", OPERATIONS, tmp_path, "-std=c++20", level)
        assert output(program) == (right, ""), level
        assembly = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True)
        assert "tombolo_dsm_atomic_fetch_nand_2" in assembly.stdout


def test_a_preloaded_runtime_gets_the_calls(plugin, tmp_path):
    (tmp_path / "runtime.c").write_text(RUNTIME)
    clang = compilers.clang_of(compilers.need_plugin(), "clang")
    library = tmp_path / "runtime.so"
    subprocess.run([clang, "-shared", "-fPIC", f"-I{ROOT}", tmp_path / "runtime.c", "-o", library], check=True)
    program = built(
        "clang",
        "#include <stdatomic.h>\n#include <stdio.h>\natomic_int a; atomic_uchar c; double x[3];"
        " void put(double* p) { p[1] = 2; p[2] = 3; }\n"
        "int main(void) { atomic_store(&c, 250); a += 3; a += 4; atomic_thread_fence(memory_order_seq_cst); put(x);"
        ' int e = 7; atomic_compare_exchange_strong(&a, &e, 300); printf("%d %d\\n", a, c); return 0; }',
        tmp_path, "-O1", "-fno-inline",
    )  # fmt: skip
    assert output(program) == ("300 250\n", "")
    said = output(program, LD_PRELOAD=str(library))
    assert said == (
        "300 250\n",
        "1: recorded 16, load 2, store 1, update 2, exchange 1, fence 1\n",
    )


def test_floating_point_updates_are_loops_of_exchanges(plugin, tmp_path):
    text = (
        "#include <stdio.h>\n_Atomic double d = 1.5; _Atomic float f = 2; int main(void) { d += 2.25; f -= 0.5f;"
        ' printf("%g %g\\n", d, (double)f); return 0; }'
    )
    for level in LEVELS:
        assert output(built("clang", text, tmp_path, level))[0] == "3.75 1.5\n"


def test_operations_on_memory_of_one_thread_stay(plugin, tmp_path):
    text = "#include <stdatomic.h>\nint main(void) { atomic_int a = 1; a += 3; return a - 4; }"
    program = built("clang", text, tmp_path, "-O0")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert "tombolo_dsm_atomic" not in symbols


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("_Atomic __int128 a; int main(void) { a = 1; return 0; }", "16"),
        ("struct s { long a[4]; }; _Atomic struct s a; int main(void) { struct s b = a; return (int)b.a[0]; }",
         "__atomic_load, an operation of libatomic"),
    ],
)  # fmt: skip
def test_other_sizes_are_refused_by_name(text, message, plugin, tmp_path):
    (tmp_path / "wide.c").write_text(text)
    command = compilers.command_line(
        "clang", ["-w", "-mcx16", "-O1", "-c", str(tmp_path / "wide.c"), "-o", "/dev/null"]
    )
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "wide.c:1:" in done.stderr and "virtual shared memory: " in done.stderr and message in done.stderr


FLAG = """
#include <sched.h>
volatile int ready; int plain; struct { volatile int flag; } s;
void put(int);
void wait_for_volatile(void) { while (!ready) sched_yield(); }
void wait_for_a_member(void) {
  while (s.flag == 0) __asm__ volatile("pause");
}
void not_a_flag(volatile int* p) { for (int k = 0; p[k]; k++) {} }
void has_a_call(void) { while (!ready) put(1); }
int sum(volatile int* p, int n) { int t = 0; for (int k = 0; k < n; k++) t += *p; return t; }
void exchange(int* p) { __asm__ volatile("lock; incl %0" : "+m"(*p)); }
"""


def test_synchronization_without_calls_is_reported(plugin, tmp_path):
    (tmp_path / "flag.c").write_text(FLAG)
    for level in LEVELS:
        said = compile("clang", tmp_path / "flag.c", tmp_path / "flag.o", [level, "-c"])
        warnings = [line for line in said.splitlines() if "warning:" in line]
        assert [int(line.split("flag.c:")[1].split(":")[0]) for line in warnings] == [5, 7, 12], (level, said)
        assert all("synchronization without calls: cannot work by pages" in line for line in warnings)


def test_a_plain_flag_is_reported_where_the_compiler_has_left_it(plugin, tmp_path):
    (tmp_path / "flag.c").write_text("int done;\nvoid wait(void) { while (!done) {} }\n")
    assert "flag.c:2:" in compile("clang", tmp_path / "flag.c", tmp_path / "flag.o", ["-O0", "-c"])


# --- The report -----------------------------------------------------------------------------------

REPORTED = """#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; long x, y[8]; void other(long*); void use(int*);
int main(int n, char** v) {
  x = 1;
  pthread_mutex_lock(&m);
  x = 2;
  y[0] = n; y[1] = n + 1;
  other(y);
  int own = n;
  own += 2;
  pthread_mutex_unlock(&m);
  return own;
}
"""


def test_a_report_that_cannot_be_written_is_told_with_its_path(plugin, tmp_path):
    source = tmp_path / "reported.c"
    source.write_text(REPORTED)
    for path, why in (("/dev/full", "No space left on device"), ("/nowhere/report", "No such file or directory")):
        words = ["-O0", "-c", f"--tombolo-report={path}"]
        argv = compilers.command_line("clang", [*words, str(source), "-o", str(tmp_path / "reported.o")])
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.startswith(f"error: tombolo: {path}: {why}\n"), done.stderr


def test_the_report_says_what_became_of_each_store(plugin, tmp_path):
    source = tmp_path / "reported.c"
    source.write_text(REPORTED)
    lines = tmp_path / "report.json"
    for _ in range(2):  # a line for each compilation
        said = compile("clang", source, tmp_path / "reported.o", ["-O0", "-c", f"--tombolo-report={lines}"])
        assert said == ""
    first, second = (json.loads(line) for line in lines.read_text().splitlines())
    assert first == second and first["unit"] == str(source)
    assert first["outside_of_copies"] == {"stores": 9, "private": 5, "outside": 1, "recorded": 3, "checked": 0}
    assert (first["functions"], first["copies"], first["merged"], first["ranges"]) == (1, 0, 1, 0)
    stores = {(at["line"], at["store"]) for at in first["stores"]}
    assert {(4, "outside"), (6, "recorded"), (7, "recorded"), (9, "private"), (10, "private")} <= stores
    assert [(call["line"], call["callee"]) for call in first["calls"]] == [(8, "other")]
    text = compile("clang", source, tmp_path / "reported.o", ["-O0", "-c", "--tombolo-report"])
    assert "9 stores, 5 private, 1 outside, 3 recorded" in text and "reported.c:8: in a span, other gets" in text
