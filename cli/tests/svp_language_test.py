# SPDX-License-Identifier: Apache-2.0
"""The language of families: programs with their output, and wrong ones with their errors."""

import os
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tombolo import libraries, svp, svp_compile

ROOT = Path(__file__).resolve().parents[2]
TESTING = ROOT / "svp/language/testing"
THESIS = ROOT / "examples/svp/fibonacci.svp"
CALLS = ROOT / "examples/svp/calls.svp"
PROGRAMS = sorted((TESTING / "programs").glob("*.svp"))
MISTAKES = TESTING / "mistakes.svp"
WRONG = sorted((TESTING / "wrong").glob("*.svp"))
EXPECTED = re.compile(r"//! (.*)")
SHOWN = re.compile(r"(?P<file>[^:\n]*):(?P<line>\d+):(?P<column>\d+): error: (?P<text>.*)")
SVPC = [str(ROOT / "tombolo"), "svp", "compile"]


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


@pytest.fixture(scope="session")
def compiler(tmp_path_factory) -> dict[str, str]:
    """The environment of compilations, with the header of the generated C++ compiled once."""
    libraries.need_program(svp.ARCHIVE)
    folder = tmp_path_factory.mktemp("precompiled")
    header = folder / "svp/language/program.h.gch"
    header.parent.mkdir(parents=True)
    options = [flag for flag in svp.flags() if flag.startswith(("-std", "-I", "-D"))]
    source = ROOT / "svp/language/program.h"
    subprocess.run(
        ["c++", "-O2", "-w", *options, "-x", "c++-header", source, "-o", header], check=True
    )
    return os.environ | {"CXX": f"c++ -I{folder}"}


def compiled(source: Path, program: Path, environment, *options: str) -> subprocess.CompletedProcess:
    command = [*SVPC, *options, source, "-o", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="session")
def built(compiler, tmp_path_factory) -> dict[str, subprocess.CompletedProcess]:
    """All programs; with the folder that they are in."""
    folder = tmp_path_factory.mktemp("programs")
    sources = [*PROGRAMS, MISTAKES, THESIS, CALLS]

    def one(source: Path) -> tuple[Path, subprocess.CompletedProcess]:
        options = [] if source == THESIS else ["-Wall", "-Wextra"]
        return source, compiled(source, folder / program_name(source), compiler, "-O1", *options)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        done = dict(threads.map(one, sources))
    return {"folder": folder} | done


def program_name(source: Path) -> str:
    return f"{source.parent.name}-{source.stem}"


def run(built, source: Path, workers: int, *arguments: str) -> subprocess.CompletedProcess:
    done = built[source]
    assert done.returncode == 0, done.stderr
    environment = os.environ | {"TOMBOLO_SVP_WORKERS": str(workers)}
    program = built["folder"] / program_name(source)
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, env=environment, timeout=120
    )


def beside(source: Path, suffix: str, default: str) -> str:
    path = source.with_suffix(suffix)
    return path.read_text() if path.is_file() else default


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("source", PROGRAMS, ids=names(PROGRAMS))
def test_a_program_gives_its_output(built, source, workers):
    done = run(built, source, workers, *beside(source, ".arguments", "").split())
    assert done.stdout == source.with_suffix(".expected").read_text(), done.stderr
    assert done.returncode == int(beside(source, ".status", "0"))
    assert built[source].stderr == ""  # with -Wall -Wextra


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 25
    assert len(WRONG) >= 10


# --- The program of the paper -------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_the_listing_of_the_paper_runs_unchanged(built, workers):
    done = run(built, THESIS, workers)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # It calls malloc and free undeclared, as C89 let it.
    assert "fibonacci.svp:33" in built[THESIS].stderr


def test_the_example_with_its_times_checks_itself(built):
    done = run(built, CALLS, 2, "20")
    assert (done.returncode, done.stdout) == (0, "fibonacci(20) = 6765\n")
    assert "ns a family" in done.stderr
    assert run(built, CALLS, 2, "1").returncode == 2


# --- Wrong programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("source", WRONG, ids=names(WRONG))
def test_a_wrong_program_is_told_where(source, tmp_path):
    done = compiled(source, tmp_path / "program", None)
    found = [match for match in SHOWN.finditer(done.stderr)]
    wanted = [
        (number, text)
        for number, line in enumerate(source.read_text().splitlines(), 1)
        for text in EXPECTED.findall(line)
    ]
    assert done.returncode == 1
    assert not (tmp_path / "program").exists()
    own = [match for match in found if match["file"] == str(source)]
    assert Counter(int(m["line"]) for m in own) == Counter(line for line, _ in wanted), done.stderr
    for line, text in wanted:
        assert any(text in m[0] for m in own if int(m["line"]) == line), (text, done.stderr)


def test_an_error_shows_its_line_and_column(tmp_path):
    done = compiled(TESTING / "wrong/sync_of_no_family.svp", tmp_path / "program", None)
    assert "    8 |     sync(number);" in done.stderr
    assert "\n      |          ^\n" in done.stderr


def test_an_error_in_a_marked_line_names_that_file(tmp_path):
    done = compiled(TESTING / "wrong/position.svp", tmp_path / "program", None)
    assert "elsewhere.h:70:1: error: sync of something that is no family: int" in done.stderr


# --- Mistakes that show while a program runs ----------------------------------------------------


def mistakes() -> dict[int, tuple[int, str]]:
    """Line and text of each."""
    found = {}
    for line, text in enumerate(MISTAKES.read_text().splitlines(), 1):
        if match := EXPECTED.search(text):
            number, _, told = match[1].partition(": ")
            found[int(number)] = line, told
    return found


@pytest.mark.parametrize("number", sorted(mistakes()))
def test_a_mistake_stops_the_program_and_names_its_line(built, number):
    line, text = mistakes()[number]
    done = run(built, MISTAKES, 2, str(number))
    assert done.returncode < 0
    assert f"tombolo: {MISTAKES}:{line}: {text}" in done.stderr


def test_without_a_mistake_the_program_ends(built):
    assert run(built, MISTAKES, 2).returncode == 0


# --- The command --------------------------------------------------------------------------------


def test_several_sources_and_objects_make_one_program(compiler, tmp_path):
    (tmp_path / "threads.h").write_text("thread add(shared long sum, long by);\n")
    (tmp_path / "threads.c").write_text(
        '#include "threads.h"\n'
        "static thread one(shared long sum, long by) { sum = sum + by * FACTOR; }\n"
        "thread add(shared long sum, long by) {\n"
        "  index i; family fid; create(fid) one(sum, by + i); sync(fid);\n}\n"
    )
    (tmp_path / "main.c").write_text(
        '#include <math.h>\n#include <stdio.h>\n#include "threads.h"\n'
        "static thread one(double *root) { *root = sqrt(*root); }\n"
        "thread main(int argc, char **argv) {\n"
        "  family a, b; long sum = 0; double root = argc + 8;\n  (void)argv;\n"
        "  create(a;; 0; 4) add(sum, 10); create(b) one(&root); sync(a); sync(b);\n"
        '  printf("%ld %g\\n", sum, root);\n}\n'
    )
    whole = subprocess.run(
        [*SVPC, "-DFACTOR=2", "-I.", "-g", "threads.c", "main.c", "-lm", "-oboth"],
        cwd=tmp_path, env=compiler, capture_output=True, text=True,
    )  # fmt: skip
    assert whole.returncode == 0, whole.stderr
    for source in ("threads.c", "main.c"):
        subprocess.run([*SVPC, "-DFACTOR=2", "-c", source], cwd=tmp_path, env=compiler, check=True)
    subprocess.run(
        [*SVPC, "threads.o", "main.o", "-lm", "-o", "linked"], cwd=tmp_path, env=compiler, check=True
    )
    for program in ("both", "linked"):
        done = subprocess.run([tmp_path / program], capture_output=True, text=True)
        assert done.stdout == "92 3\n", done.stderr


def test_a_debugger_knows_the_lines_of_the_source(built, compiler, tmp_path):
    source = TESTING / "programs/recursion.svp"
    program = tmp_path / "program"
    assert compiled(source, program, compiler, "-g").returncode == 0
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = re.search(r"^(\w+) [Tt] fibonacci$", symbols, re.MULTILINE)[1]
    told = subprocess.run(["addr2line", "-e", program, address], capture_output=True, text=True)
    assert told.stdout.strip().endswith("recursion.svp:5")


def test_the_c_compiler_names_the_source_too(compiler, tmp_path):
    source = tmp_path / "unused.c"
    source.write_text("thread main(void)\n{\n    family fid;\n    int unused;\n}\n")
    done = compiled(source, tmp_path / "program", compiler, "-Wall")
    assert done.returncode == 0
    assert f"{source}:4:" in done.stderr
    done = compiled(source, tmp_path / "other", compiler, "-Wall", "-Werror")
    assert done.returncode == 1


@pytest.mark.parametrize("name", ["pointers", "several_shared", "breaks"])
def test_a_strict_compiler_has_nothing_to_say(name, tmp_path):
    source = TESTING / f"programs/{name}.svp"
    subprocess.run([*SVPC, "--emit-cpp", source, "-o", tmp_path], check=True, capture_output=True)
    command = ["cc", "-std=c99", "-pedantic-errors", *svp_compile.FOR_C, "-x", "cpp-output", "-c"]
    done = subprocess.run(
        [*command, tmp_path / f"{name}.svp.i", "-o", tmp_path / "o"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_emit_cpp_writes_both_parts(tmp_path):
    shutil.copy(THESIS, tmp_path)
    done = subprocess.run(
        [*SVPC, "--emit-cpp", "fibonacci.svp"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == ["fibonacci.svp.i", "fibonacci.svp.cpp"]
    cpp = (tmp_path / "fibonacci.svp.cpp").read_text()
    assert '#line 45 "fibonacci.svp"' in cpp
    assert "language::create<thread_fibonacci_compute>" in cpp


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.c"], "missing.c: there is no such file"),
        (["a.cpp"], "a source ends in .c or .svp"),
        (["-S", "a.c"], "-S is no option of this compiler"),
        (["-o"], "-o needs a value"),
        (["-O2"], "there is no source"),
        (["-o", "a.c", __file__.replace(".py", ".c")], "there is no such file"),
    ],
)
def test_wrong_arguments_are_told(arguments, text):
    done = subprocess.run([*SVPC, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert text in done.stderr


def test_a_source_is_not_replaced(tmp_path):
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run([*SVPC, source, "-o", source], capture_output=True, text=True)
    assert done.returncode == 2
    assert "would replace a source" in done.stderr


def test_flags_are_of_one_step_or_the_other():
    whole = set(svp.flags())
    parts = [set(svp_compile._flags(compiling)) for compiling in (True, False)]
    assert parts[0] | parts[1] == whole
    assert not parts[0] & parts[1]
