# SPDX-License-Identifier: Apache-2.0
"""Atomic instructions are told from names, tables and fences, in programs with symbols and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import dsm_atomics, paths
from tombolo.errors import UserError

STRIPPED = [(), ("-s",)]

# The variables and functions have the names of instructions and prefixes.
NAMES = """
#include <pthread.h>
#include <string.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; int xchg[4]; char rep[64]; long cmpxchg16b;
#define APART __attribute__((noinline))
APART void lock_add(int* at) { pthread_mutex_lock(&lock); *at += 1; pthread_mutex_unlock(&lock); }
APART void xchg_all(void) { int first = xchg[0]; xchg[0] = xchg[1]; xchg[1] = first; lock_add(&xchg[2]); }
static APART void* xacquire(void* p) { memset(rep, 1, sizeof rep); xchg_all(); cmpxchg16b += 1; return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, xacquire, 0); return pthread_join(t, 0); }
"""
FUNCTIONS = """
#include <stdio.h>
#define APART __attribute__((noinline))
APART int lock(int a) { return a + 1; } APART int xchg(int* a, int b) { int old = *a; *a = b; return old; }
APART int rep(int a) { return a * 3; }
int main(int c, char** v) { printf("%d", lock(c) + xchg(&c, 2) + rep(c)); return v == 0; }
"""
CPP_NAMES = """
#include <mutex>
namespace lock {
struct xchg { int rep = 0; void operator()(int& a) { rep = a; a = 2; } template <class T> void lock(T a); };
}
template <class T> __attribute__((noinline)) void lock::xchg::lock(T a) { rep += a; }
std::mutex xchg; lock::xchg taken; int counted[2];
__attribute__((noinline)) void lock_and_xchg() {
  std::lock_guard<std::mutex> lock(xchg); taken(counted[1]); taken.lock(2L);
}
int main() { lock_and_xchg(); return taken.rep > 5; }
"""

# As atomic instructions: lock xadd, xchg and lock inc. 06 is no instruction of 64 bits.
BYTES = ".byte 0xf0,0x0f,0xc1,0x07, 0x87,0x07, 0xf0,0xff,0x00, 0x06,0x06,0x06,0x06, 0xf0,0xff,0x00"
TABLES = {
    "an object": f".type table,@object; table: {BYTES}; .size table, . - table",
    "a label": f"table: {BYTES}",
    "nothing": BYTES,
}
WITH_TABLE = """
__asm__(".text; %s; .balign 16");
int main(int c, char** v) { return v == 0 ? c : 0; }
"""

ATOMIC = {
    "lock": "lock; incl (%rdi)",
    "lock with an index": "lock orl $0, 8(%rsp,%rdi)",
    "exchange": "xchg %eax, (%rdi)",
    "exchange of a byte": "xchg %al, 3(%rdi,%rsi,4)",
    "exchange of a variable": "xchg %rax, target(%rip)",
    "16 bytes": "lock cmpxchg16b (%rdi)",
    "xacquire": "xacquire lock xaddl %eax, (%rdi)",
    "no fence": "lock orl $1, (%rsp)",
    "no fence either": "lock orl $0, (%rdi)",
    "behind a table": f"jmp 1f; {BYTES}; 1: lock; decq (%rdi)",
}
WITH_INSTRUCTION = """
long target;
__attribute__((noinline)) void here(void) { __asm__("%s"); }
int main(int c, char** v) { if (v == 0) here(); return c == 0; }
"""
HARMLESS = [
    "lock orl $0, (%rsp)", "lock addl $0, -8(%rsp)", "lock; orq $0, 64(%rsp)", "mfence", "xchg %eax, %edx",
    "xchg %ax, %ax", "cmpxchg %eax, (%rdi)", "movl $0xf0f0f0f0, %eax", "rep movsb", "xorl 0x8787(%rdi), %eax",
]  # fmt: skip


def made(folder: Path, text: str, *options: str, compiler: str = "cc") -> Path:
    source = folder / ("plain.cpp" if compiler == "c++" else "plain.c")
    source.write_text(text)
    program = folder / "plain"
    subprocess.run([compiler, "-O1", "-pthread", source, *options, "-o", program], check=True)
    return program


@pytest.mark.parametrize("options", [(), ("-g",), ("-s",), ("-O3", "-static-pie")])
def test_variables_may_have_the_names_of_instructions(options, tmp_path):
    program = made(tmp_path, NAMES, *options)
    if "-static-pie" in options:  # with the C library's own
        places = dsm_atomics.places_in(program)
        assert not {"lock_add", "xchg_all", "xacquire", "main"} & {place.function for place in places}
    else:
        dsm_atomics.check(program)


@pytest.mark.parametrize("options", STRIPPED)
def test_functions_may_have_the_names_of_instructions(options, tmp_path):
    dsm_atomics.check(made(tmp_path, FUNCTIONS, *options))


@pytest.mark.parametrize("options", STRIPPED)
def test_names_of_cpp_may_hold_those_of_instructions(options, tmp_path):
    dsm_atomics.check(made(tmp_path, CPP_NAMES, *options, compiler="c++"))


@pytest.mark.parametrize("options", STRIPPED)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_between_functions_is_no_code(table, options, tmp_path):
    dsm_atomics.check(made(tmp_path, WITH_TABLE % TABLES[table], *options))


@pytest.mark.parametrize("instruction", ATOMIC)
def test_an_atomic_instruction_is_refused_by_name(instruction, tmp_path):
    with pytest.raises(UserError, match=r"atomic instructions: here \(plain\+0x[0-9a-f]+\)\. With"):
        dsm_atomics.check(made(tmp_path, WITH_INSTRUCTION % ATOMIC[instruction]))


@pytest.mark.parametrize("instruction", ATOMIC)
def test_without_names_it_is_refused_by_address(instruction, tmp_path):
    with pytest.raises(UserError, match=r"atomic instructions: plain\+0x[0-9a-f]+[.,]"):
        dsm_atomics.check(made(tmp_path, WITH_INSTRUCTION % ATOMIC[instruction], "-s"))


@pytest.mark.parametrize("options", [(), ("-nostartfiles", "-Wl,-emain")])
def test_without_a_table_for_unwinding_it_is_refused_too(options, tmp_path):
    """The file does not tell of the function, or of any."""
    options = ("-s", "-fno-asynchronous-unwind-tables", *options)
    with pytest.raises(UserError, match=r"atomic instructions: plain\+0x[0-9a-f]+\. With"):
        dsm_atomics.check(made(tmp_path, WITH_INSTRUCTION % ATOMIC["lock"], *options))


def test_a_function_without_a_size_ends_before_its_table(tmp_path):
    """In assembly: of the two functions one has an atomic instruction, behind a jump over constants."""
    quiet = f".type quiet, @function; quiet: testl %edi, %edi; jne 1f; ret; 1: nop; ret; {BYTES}; .balign 16"
    atomic = f".type loud, @function; loud: jmp 1f; {BYTES}; 1: lock; incl (%rdi); ret; .balign 16"
    dsm_atomics.check(made(tmp_path, WITH_TABLE % quiet))
    with pytest.raises(UserError, match=r"atomic instructions: loud \(plain\+0x"):
        dsm_atomics.check(made(tmp_path, WITH_TABLE % f"{quiet}; {atomic}"))


@pytest.mark.parametrize("options", STRIPPED)
@pytest.mark.parametrize("instruction", HARMLESS)
def test_fences_and_plain_instructions_are_not_refused(instruction, options, tmp_path):
    dsm_atomics.check(made(tmp_path, WITH_INSTRUCTION % instruction, *options))


def test_a_place_is_named_as_in_the_source(tmp_path):
    text = "namespace a { template <class T> [[gnu::noinline]] T add(T* p) { return __atomic_add_fetch(p, 1, 5); } }\n"
    text += "long one; int main() { return a::add(&one) > 3; }"
    with pytest.raises(UserError, match=r"long a::add<long>\(long\*\) \(plain\+0x"):
        dsm_atomics.check(made(tmp_path, text, compiler="c++"))


def test_the_message_names_a_compiler_that_is_there(tmp_path, monkeypatch):
    program = made(tmp_path, WITH_INSTRUCTION % ATOMIC["lock"])
    with pytest.raises(UserError, match=r"Compile it with \./tombolo dsm cc or \./tombolo dsm c\+\+, run"):
        dsm_atomics.check(program)
    monkeypatch.setenv("TOMBOLO_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "checkout", lambda: None)
    with pytest.raises(UserError, match=r"Compile it with tombolo-cc or tombolo-c\+\+, run"):
        dsm_atomics.check(program)


@pytest.mark.parametrize("way", ["in a folder with a blank", "by a path from this folder"])
def test_a_library_of_the_program_is_looked_at_too(tmp_path, monkeypatch, way):
    folder = tmp_path / "my libraries"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "l.c").write_text("void count(long *at) { __atomic_fetch_add(at, 1, 5); }")
    subprocess.run(["cc", "-shared", "-fPIC", "l.c", "-o", "libown.so"], check=True)
    options = ["./libown.so"] if "this folder" in way else ["-L.", "-lown", f"-Wl,-rpath,{folder}"]
    text = "void count(long *); int main(void) { long one = 0; count(&one); return one != 1; }"
    program = made(tmp_path, text, *options)
    with pytest.raises(UserError, match=r"atomic instructions: count \(libown\.so\+0x"):
        dsm_atomics.check(program)


def test_without_the_decoder_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tombolo.machine_code", None)
    with pytest.raises(UserError, match=r"the decoder .* is missing .*pip install .*--atomic-instructions ignore"):
        dsm_atomics.check(made(tmp_path, NAMES))


def test_a_signal_waits_until_the_decoder_is_loaded(tmp_path):
    """Python code that `lief` calls while it is loaded may not raise. The command has one thread; in this process the
    libraries that draw have more, of which one would take the signal."""
    (tmp_path / "lief.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsum(range(1000))\nprint('whole', flush=True)\n"
    )
    code = (
        "import sys\nfrom pathlib import Path\nfrom tombolo import dsm_atomics\ndsm_atomics.check(Path(sys.argv[1]))\n"
    )
    env = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(paths.__file__).parents[1]}"}
    command = [sys.executable, "-c", code, str(made(tmp_path, NAMES))]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.stdout == "whole\n" and done.stderr.endswith("\nKeyboardInterrupt\n"), done.stderr


def test_a_name_that_is_no_text_is_shown_by_its_bytes(tmp_path):
    program = made(tmp_path, WITH_INSTRUCTION % ATOMIC["lock"])
    subprocess.run(["objcopy", b"--redefine-sym=here=h\xe9re", program], check=True)
    with pytest.raises(UserError, match=r"atomic instructions: h\\xe9re \(plain\+0x[0-9a-f]+\)\. With"):
        dsm_atomics.check(program)


def test_other_files_have_no_instructions(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n: lock xchg\n")
    assert dsm_atomics.places_in(script) == []
