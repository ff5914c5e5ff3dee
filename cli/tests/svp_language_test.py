# SPDX-License-Identifier: Apache-2.0
"""The language of families: programs with their output, and wrong ones with their errors."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tombolo import libraries, svp, svp_compile
from tombolo.errors import UserError
from tombolo.svp_language.translate import translated

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


# Of all programs as one: its headers are parsed once. A program that is linked to it takes its own
# part, by its name; -Og halves the time of a compilation with -O2.
TOGETHER = ["-Og", "-ffunction-sections", "-fdata-sections"]
OWN_PART = "-Wl,--gc-sections"
OWN_MAIN = "-Wl,--defsym=main=_ZN{length}{part}4mainEiPPc"


def svpc(*arguments: object, **options) -> subprocess.CompletedProcess:
    command = [*SVPC, *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


@dataclass
class Program:
    """One that was translated and compiled, with all that was said about it."""

    path: Path
    messages: str

    def run(self, workers: int, *arguments: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"TOMBOLO_SVP_WORKERS": str(workers)}
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> dict[Path, Program]:
    """All programs, by their sources."""
    libraries.need_program(svp.ARCHIVE)
    folder = tmp_path_factory.mktemp("programs")
    sources = {source.stem: source for source in (*PROGRAMS, MISTAKES, THESIS, CALLS)}
    done = svpc("--emit-cpp", *sources.values(), "-o", folder)
    assert (done.returncode, done.stderr) == (0, "")
    families = folder / "families.cpp"
    included = ((stem, f'#include "{folder / stem}.svp.cpp"') for stem in sources)
    families.write_text(
        '#include "tombolo/detail/svp/language/program.h"\n'
        + "".join(f"namespace of_{stem} {{\n{line}\n}}\n" for stem, line in included)
    )
    command = ["c++", *TOGETHER, *svp_compile._flags(compiling=True), "-c", families]
    subprocess.run([*command, "-o", f"{families}.o"], check=True)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        programs = threads.map(lambda stem: joined(folder / stem, sources[stem], families), sources)
        return dict(zip(sources.values(), programs, strict=True))


def joined(base: Path, source: Path, families: Path) -> Program:
    """The C of a program, linked to its part of all families."""
    warnings = [] if source == THESIS else ["-Wall", "-Wextra"]
    command = ["cc", "-std=gnu99", *svp_compile.FOR_C, *warnings, "-O1", "-x", "cpp-output"]
    done = subprocess.run([*command, "-c", f"{base}.svp.i", "-o", f"{base}.o"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = [OWN_PART]
    if "int main(" in Path(f"{base}.svp.cpp").read_text():  # else it is in the program's C
        part = f"of_{base.name}"
        own.append(OWN_MAIN.format(length=len(part), part=part))
    linked = [f"{base}.o", f"{families}.o", *svp_compile._flags(compiling=False), *own, "-s"]
    subprocess.run(["c++", *linked, "-o", base], check=True)
    return Program(base, done.stderr)


def beside(source: Path, suffix: str, default: str) -> str:
    path = source.with_suffix(suffix)
    return path.read_text() if path.is_file() else default


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("source", PROGRAMS, ids=names(PROGRAMS))
def test_a_program_gives_its_output(built, source, workers):
    done = built[source].run(workers, *beside(source, ".arguments", "").split())
    assert done.stdout == source.with_suffix(".expected").read_text(), done.stderr
    assert done.returncode == int(beside(source, ".status", "0"))
    assert built[source].messages == ""  # with -Wall -Wextra


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 25
    assert len(WRONG) >= 10


def test_a_family_may_be_declared_behind_a_size_that_no_path_leaves():
    types = "typedef struct svp_family { int of; } family; void exit(int);"
    text = f'# 1 "made.c"\n{types} int main(void) {{ family several[(exit(1), 2)], one; return 0; }}\n'
    assert "svp_begin((svp_family *)&one, " in translated(text, "made.c", "made").c


# --- The program of the paper -------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_the_listing_of_the_paper_runs_unchanged(built, workers):
    done = built[THESIS].run(workers)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # It calls malloc and free undeclared, as C89 let it.
    assert "fibonacci.svp:33" in built[THESIS].messages


def test_the_example_with_its_times_checks_itself(built):
    done = built[CALLS].run(2, "20")
    assert (done.returncode, done.stdout) == (0, "fibonacci(20) = 6765\n")
    assert "ns a family" in done.stderr
    assert built[CALLS].run(2, "1").returncode == 2


# --- Wrong programs -----------------------------------------------------------------------------


@pytest.fixture
def refused(capfd, tmp_path) -> Callable[[Path], str]:
    """Compiles a wrong program in this process. Its messages."""

    def refuse(source: Path) -> str:
        status = svp_compile.compile_all("tombolo-svpc", [str(source), "-o", f"{tmp_path}/program"])
        assert status == 1
        assert not (tmp_path / "program").exists()
        return capfd.readouterr().err

    return refuse


@pytest.mark.parametrize("source", WRONG, ids=names(WRONG))
def test_a_wrong_program_is_told_where(source, refused):
    told = refused(source)
    found = list(SHOWN.finditer(told))
    wanted = [
        (number, text)
        for number, line in enumerate(source.read_text().splitlines(), 1)
        for text in EXPECTED.findall(line)
    ]
    own = [match for match in found if match["file"] == str(source)]
    assert Counter(int(m["line"]) for m in own) == Counter(line for line, _ in wanted), told
    for line, text in wanted:
        assert any(text in m[0] for m in own if int(m["line"]) == line), (text, told)


def test_an_error_shows_its_line_and_column(refused):
    told = refused(TESTING / "wrong/sync_of_no_family.svp")
    assert "    8 |     sync(number);" in told
    assert "\n      |          ^\n" in told


def test_an_error_in_a_marked_line_names_that_file(refused):
    told = refused(TESTING / "wrong/position.svp")
    assert "elsewhere.h:70:1: error: sync of something that is no family: int" in told


def test_the_command_fails_with_a_wrong_program(tmp_path):
    done = svpc(TESTING / "wrong/sync_of_no_family.svp", "-o", tmp_path / "program")
    assert done.returncode == 1
    assert "error: sync of something that is no family" in done.stderr


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
    done = built[MISTAKES].run(2, str(number))
    assert done.returncode < 0
    assert f"tombolo: {MISTAKES}:{line}: {text}" in done.stderr


def test_without_a_mistake_the_program_ends(built):
    assert built[MISTAKES].run(2).returncode == 0


# --- The command --------------------------------------------------------------------------------


def test_several_sources_and_objects_make_one_program(tmp_path):
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
        "int doubled(int number)\n{ return 2 * number; }\n"
        "thread main(int argc, char **argv) {\n"
        "  family a, b; int unused; long sum = 0; double root = doubled(argc) + 7;\n  (void)argv;\n"
        "  create(a;; 0; 4) add(sum, 10); create(b) one(&root); sync(a); sync(b);\n"
        '  printf("%ld %g\\n", sum, root);\n}\n'
    )
    parts = svpc("-DFACTOR=2", "-I.", "-g", "-Wall", "-c", "threads.c", "main.c", cwd=tmp_path)
    assert parts.returncode == 0, parts.stderr
    assert re.search(r"main.c:8:\d+: warning: unused variable", parts.stderr)  # by the C compiler
    assert svpc("threads.o", "main.o", "-lm", "-o", "linked", cwd=tmp_path).returncode == 0
    assert svpc("threads.o", "main.c", "-lm", "-oboth", cwd=tmp_path).returncode == 0
    for program in ("both", "linked"):
        done = subprocess.run([tmp_path / program], capture_output=True, text=True)
        assert done.stdout == "92 3\n", done.stderr
    assert line_of("doubled", tmp_path / "linked").endswith("main.c:6")


def line_of(function: str, program: Path) -> str:
    """Of the source, as a debugger knows it."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = re.search(rf"^(\w+) [Tt] {function}$", symbols, re.MULTILINE)[1]
    told = subprocess.run(["addr2line", "-e", program, address], capture_output=True, text=True)
    return told.stdout.strip()


def test_an_error_of_a_compiler_is_the_status(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "true")
    (tmp_path / "unused.c").write_text("thread main(void) { family fid; int unused; }\n")
    done = svpc("-Wall", "-Werror", "unused.c", "-o", "program", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"unused.c:1:\d+: error: unused variable", done.stderr)


@pytest.mark.parametrize("name", ["pointers", "several_shared", "breaks"])
def test_a_strict_compiler_has_nothing_to_say(built, name, tmp_path):
    translated = f"{built[TESTING / f'programs/{name}.svp'].path}.svp.i"
    command = ["cc", "-std=c99", "-pedantic-errors", *svp_compile.FOR_C, "-x", "cpp-output", "-c"]
    done = subprocess.run([*command, translated, "-o", tmp_path / "o"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_emit_cpp_writes_both_parts(tmp_path):
    shutil.copy(THESIS, tmp_path)
    done = svpc("--emit-cpp", "fibonacci.svp", cwd=tmp_path)
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
    with pytest.raises(UserError, match=re.escape(text)):
        svp_compile.compile_all("tombolo-svpc", arguments)


def test_the_command_tells_wrong_arguments():
    done = svpc("missing.c")
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing.c: there is no such file" in done.stderr


def test_a_source_is_not_replaced(tmp_path):
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    with pytest.raises(UserError, match="would replace a source"):
        svp_compile.compile_all("tombolo-svpc", [str(source), "-o", str(source)])
    assert source.read_text().startswith("int main")


def test_flags_are_of_one_step_or_the_other():
    whole = set(svp.flags())
    parts = [set(svp_compile._flags(compiling)) for compiling in (True, False)]
    assert parts[0] | parts[1] == whole
    assert not parts[0] & parts[1]
