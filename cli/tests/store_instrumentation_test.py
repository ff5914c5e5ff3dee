# SPDX-License-Identifier: Apache-2.0
"""Store instrumentation: the recorded bytes of programs, compared with a twin and with known stores."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import span_programs
from tombolo import compilers
from tombolo.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
RECORDER = ROOT / "dsm" / "compiler" / "testing" / "recorder.c"
COMPILERS = {False: ("clang", "c"), True: ("clang++", "cpp")}
# The programs overflow on purpose, and see one object as bytes and as a structure.
FLAGS = ["-fwrapv", "-fno-strict-aliasing", "-w", "-pthread", f"-I{ROOT}"]
LEVELS = ("-O0", "-O1", "-O2", "-O3")
SEEDS = int(os.environ.get("TOMBOLO_TEST_SEEDS", "4"))


@pytest.fixture(scope="session")
def plugin() -> Path:
    try:
        return compilers.need_plugin()
    except UserError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def recorder(plugin, tmp_path_factory) -> Path:
    into = tmp_path_factory.mktemp("recorder") / "recorder.o"
    clang = compilers.clang_of(plugin, "clang")
    subprocess.run([clang, "-O2", f"-I{ROOT}", "-c", RECORDER, "-o", into], check=True)
    return into


@dataclass
class Part:
    """The time between two calls that begin or end spans: one bit for each byte."""

    depth: int
    changed: int
    recorded: int


@dataclass
class Run:
    parts: list[Part]
    memory: str
    records: int
    outside: int


def bits(digits: str) -> int:
    return int(digits[::-1], 16)  # the lowest byte's digit is the last one; the bits are in order


def run(program: Path) -> Run:
    done = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (program, done.returncode, done.stderr)
    parts, said = [], {}
    for line in done.stdout.splitlines():
        word, *rest = line.split()
        if word == "part":
            parts.append(Part(int(rest[0]), bits(rest[1]), bits(rest[2])))
        else:
            said[word] = rest[0]
    return Run(parts, said.get("memory", ""), int(said["records"]), int(said["outside"]))


def compile(compiler: str, source: Path, into: Path, arguments: Sequence, instrumented: bool = True) -> str:
    """The compiler's standard error."""
    if instrumented:
        command = compilers.command_line(compiler, [*map(str, arguments), str(source), "-o", str(into)])
    else:
        clang = compilers.clang_of(compilers.need_plugin(), compiler)
        command = [str(clang), *map(str, arguments), str(source), "-o", str(into)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def compare(found: Run, right: Run, about: str) -> None:
    """Each changed byte is recorded, and no byte that is not stored."""
    assert found.memory == right.memory, about
    assert [p.depth for p in found.parts] == [p.depth for p in right.parts], about
    for number, (part, known) in enumerate(zip(found.parts, right.parts, strict=True)):
        where = f"{about}: part {number}"
        assert part.changed == known.changed, where
        missing = part.changed & ~part.recorded
        assert not missing, f"{where}: changed and not recorded: {missing:x}"
        beside = part.recorded & ~known.recorded
        assert not beside, f"{where}: recorded and not stored: {beside:x}"


@pytest.mark.parametrize("cpp", [False, True], ids=["c", "cpp"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs_record_what_they_store(seed, cpp, recorder, tmp_path):
    compiler, suffix = COMPILERS[cpp]
    source = tmp_path / f"program.{suffix}"
    source.write_text(span_programs.program(seed, cpp))
    flags = [*FLAGS, recorder]
    compile(compiler, source, tmp_path / "right", [*flags, "-O0", "-DNOTED"], instrumented=False)
    right = run(tmp_path / "right")
    assert right.parts, "the program has no spans"
    for level in LEVELS:
        for stores in ("static", "full") if level in ("-O0", "-O2") else ("static",):
            about = f"seed {seed} {level} {stores} of {source}"
            compile(compiler, source, tmp_path / "found", [*flags, level, f"--tombolo-stores={stores}"])
            found = run(tmp_path / "found")
            compare(found, right, about)
            assert found.outside == 0 or stores == "static", about


# --- One program for each claim -------------------------------------------------------------------

SHARED = """
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
unsigned char shared_memory[4096] __attribute__((aligned(64)));
const size_t shared_bytes = sizeof shared_memory;
#define longs ((long*)shared_memory)
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#define LOCK pthread_mutex_lock(&mutex)
#define UNLOCK pthread_mutex_unlock(&mutex)
#define NOINLINE __attribute__((noinline))
"""


@pytest.fixture
def recorded(recorder, tmp_path):
    """Compiles and runs a program of one span: its recorded bytes, and the number of records."""

    def made(text: str, *arguments: str) -> tuple[list[range], int, Run]:
        source = tmp_path / "program.c"
        source.write_text(SHARED + text)
        compile("clang", source, tmp_path / "program", [*FLAGS, recorder, *arguments])
        found = run(tmp_path / "program")
        return ranges(found.parts[-1].recorded), found.records, found

    return made


def ranges(bitmap: int) -> list[range]:
    found, at = [], 0
    while bitmap >> at:
        if bitmap >> at & 1:
            start = at
            while bitmap >> at & 1:
                at += 1
            found.append(range(start, at))
        else:
            at += 1
    return found


def test_neighbouring_stores_are_one_record(recorded):
    body = "int main(void) { LOCK; for (int k = 5; k >= 0; k--) longs[k] = k; longs[9] = 1; UNLOCK; return 0; }"
    assert recorded(body, "-O2")[:2] == ([range(48), range(72, 80)], 2)


def test_a_loop_is_one_record(recorded):
    body = (
        "NOINLINE void fill(long* p, long n) { LOCK; for (long k = 0; k < n; k++) p[k] = k; UNLOCK; }"
        "int main(void) { fill(longs + 1, 101); return 0; }"
    )
    found, records, _ = recorded(body, "-O2", "-fno-vectorize")
    assert found == [range(8, 816)] and records <= 2


def test_a_loop_backwards_is_one_record(recorded):
    body = (
        "NOINLINE void fill(long* p, long n) { LOCK; for (long k = n - 1; k >= 0; k--) p[k] = p[k] * 3 + k; UNLOCK; }"
        "int main(void) { fill(longs + 1, 101); return 0; }"
    )
    found, records, _ = recorded(body, "-O1")
    assert found == [range(8, 816)] and records == 1


def test_a_loop_with_gaps_records_no_gap(recorded):
    body = "int main(int n, char** v) { LOCK; for (long k = 0; k < n + 3; k++) longs[2 * k] = k; UNLOCK; return 0; }"
    for level in LEVELS:
        assert recorded(body, level)[0] == [range(16 * k, 16 * k + 8) for k in range(4)]


def test_a_loop_without_rounds_records_nothing(recorded):
    body = (
        "NOINLINE void fill(long* p, long n) { LOCK; for (long k = 0; k < n; k++) { p[k] = k; p[50] += k; } UNLOCK; }"
        "int main(void) { fill(longs, 0); return 0; }"
    )
    for level in (*LEVELS, "-Os", "-Oz"):
        assert recorded(body, level)[0] == []


def test_stores_outside_of_spans_cost_nothing(recorded, tmp_path):
    body = (
        "static NOINLINE void fill(long* p, long n) { for (long k = 0; k < n; k++) p[k] = k; }"
        "int main(int n, char** v) { fill(longs, 9 + n); LOCK; UNLOCK; return 0; }"
    )
    assert recorded(body, "-O2")[2].outside == 0
    assert "tombolo_dsm" not in assembly(tmp_path / "program.c", "-O2", tmp_path)
    assert "tombolo_dsm" in assembly(tmp_path / "program.c", "-O2", tmp_path, "--tombolo-stores=full")


def assembly(source: Path, level: str, folder: Path, *arguments: str) -> str:
    compile("clang", source, folder / "program.s", [*FLAGS, level, "-S", *arguments])
    return (folder / "program.s").read_text()


def test_the_variant_page_records_nothing(recorded):
    body = "int main(void) { LOCK; longs[1] = 3; UNLOCK; return 0; }"
    assert recorded(body, "-O1")[0] == [range(8, 16)]
    assert recorded(body, "-O1", "--tombolo-stores=page")[:2] == ([], 0)


def test_a_function_of_another_unit_sees_the_flag(recorder, tmp_path):
    (tmp_path / "other.c").write_text(
        "#define NOINLINE\n"
        "void fill(long* p, long n) { for (long k = 0; k < n; k++) p[k] = k; }\n"
        "struct big { long a[8]; };\n"
        "void put(struct big b, long* p, long n) { for (long k = 0; k < n; k++) p[k] = b.a[k & 7]; }\n"
        "void many(long* p, int n, ...) { __builtin_va_list l; __builtin_va_start(l, n);"
        " while (n--) *p++ = __builtin_va_arg(l, long); __builtin_va_end(l); }\n"
    )
    (tmp_path / "program.c").write_text(
        SHARED + "struct big { long a[8]; }; void fill(long*, long); void put(struct big, long*, long);\n"
        "void many(long* p, int n, ...);\n"
        "int main(void) { struct big b = {{1, 2, 3}}; fill(longs, 50); LOCK; fill(longs + 100, 20);"
        " put(b, longs + 200, 11); many(longs + 300, 3, 4L, 5L, 6L); UNLOCK; many(longs, 1, 2L); return 0; }"
    )
    for level in LEVELS:
        compile("clang", tmp_path / "program.c", tmp_path / "program",
                [*FLAGS, recorder, level, tmp_path / "other.c"])  # fmt: skip
        found = run(tmp_path / "program")
        assert ranges(found.parts[0].recorded) == [range(800, 960), range(1600, 1688), range(2400, 2424)]
        assert found.outside == 0


def test_computed_jumps_stay_in_their_function(recorded):
    body = (
        "NOINLINE void steps(long* p, const char* s) { static const void* to[] = {&&put, &&next, &&end};"
        " goto *to[*s]; put: *p = 7 + *s; next: ++p; goto *to[*++s]; end: return; }"
        "int main(void) { steps(longs, (const char[]){0, 2}); LOCK; steps(longs + 2, (const char[]){1, 0, 0, 2});"
        " UNLOCK; return 0; }"
    )
    for level in LEVELS:
        assert recorded(body, level)[0] == [range(24, 40)]


def test_vectors_under_a_mask_record_their_lanes(recorded):
    body = (
        '#include <stdint.h>\n__attribute__((target("avx2"), noinline)) void fill(int* p, const int* c, long n)'
        " { LOCK; for (long k = 0; k < n; k++) if (c[k]) p[k] = (int)k + 5; UNLOCK; }"
        "int main(void) { int c[64]; for (int k = 0; k < 64; k++) c[k] = k % 3 == 0; fill((int*)shared_memory, c, 64);"
        " return 0; }"
    )
    found = recorded(body, "-O3", "-mavx2")[0]
    assert found == [range(12 * k, 12 * k + 4) for k in range(22)]


def test_library_calls_record_what_they_write(recorded):
    body = """
    int main(void) {
      char* c = (char*)shared_memory; volatile int n = 3; FILE* zero = fopen("/dev/zero", "r");
      strcpy(c + 400, "ab");
      LOCK;
      strcpy(c, n ? "four" : "x"); strcat(c + 400, "cde"); strncpy(c + 500, "x", 9);
      snprintf(c + 600, 4, "%d", 123456 * n); sprintf(c + 700, "%d", n + 40);
      if (fread(c + 800, 2, 5, zero) != 5) return 1;
      memset(c + 900, n, (size_t)n + 7); strncat(c + 1000, "uvwxyz", 2);
      if (fgets(c + 1100, 50, stdin) != 0) return 2;
      UNLOCK; return 0; }
    """
    wanted = [range(5), range(402, 406), range(500, 509), range(600, 604), range(700, 703),
              range(800, 810), range(900, 910), range(1000, 1003)]  # fmt: skip
    for level in LEVELS:
        assert recorded(body, level)[0] == wanted, level


def test_a_lock_of_the_users_own_is_named_by_an_option(recorder, tmp_path):
    (tmp_path / "own.c").write_text("#include <pthread.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n"
                                    "void enter(void) { pthread_mutex_lock(&m); }\n"
                                    "void leave(void) { pthread_mutex_unlock(&m); }\n")  # fmt: skip
    (tmp_path / "program.c").write_text(
        SHARED + "void enter(void); void leave(void); int main(void) { enter(); longs[3] = 1; leave(); return 0; }"
    )
    for options, wanted in (([], []), (["--tombolo-begins=enter", "--tombolo-ends=leave"], [range(24, 32)])):
        compile("clang", tmp_path / "program.c", tmp_path / "program",
                [*FLAGS, recorder, "-O1", tmp_path / "own.c", *options])  # fmt: skip
        assert ranges(run(tmp_path / "program").parts[0].recorded) == wanted


@pytest.mark.parametrize(
    ("make", "escape", "records"),
    [("long own[2]", "", 0), ("long own[2]", "known = own;", 1), ("static __thread long own[2]", "", 0),
     ("static long own[2]", "", 1)],
)  # fmt: skip
def test_memory_is_private_until_its_address_is_handed_on(make, escape, records, recorded):
    body = (
        f"long* known; int main(int n, char** v) {{ {make}; {escape} LOCK; own[1] = n; UNLOCK;"
        " return (int)own[1] - 1; }"
    )
    assert recorded(body, "-O0")[1] == records


def test_a_block_of_the_heap_that_others_know_is_recorded(recorded):
    body = (
        "#include <stdlib.h>\nlong* known; int main(int n, char** v) { long* p = malloc(16); known = p;"
        " LOCK; p[1] = n; UNLOCK; return 0; }"
    )
    for level in LEVELS:
        assert recorded(body, level)[1] == 1
