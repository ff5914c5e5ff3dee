# SPDX-License-Identifier: Apache-2.0
"""`tombolo-cc` and `tombolo-c++` take clang's arguments and do as clang does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_instrumentation_test import ROOT, plugin
from tombolo import compilers, libraries
from tombolo.app import made
from tombolo.errors import UserError
from typer.testing import CliRunner

__all__ = ["plugin"]  # a fixture

BIN = ROOT / "dsm" / "compiler" / "bin"
HELLO = r"""#include <stdio.h>
#include <pthread.h>
long x; pthread_mutex_t m;
int main(void) { pthread_mutex_lock(&m); x = 4; pthread_mutex_unlock(&m); printf("%ld\n", x); return 0; }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.c").write_text(HELLO)
    return tmp_path


def cc(*arguments: str, name: str = "cc") -> subprocess.CompletedProcess:
    code = f"import sys; sys.argv[0] = 'x'; from tombolo import compilers; compilers.{name}()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "cli")}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)


def quiet(*arguments: str, name: str = "cc") -> str:
    """Its standard output; it has ended well and said nothing."""
    done = cc(*arguments, name=name)
    assert (done.returncode, done.stderr) == (0, ""), arguments
    return done.stdout


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("a.c", True), ("a.c -o a", True), ("a.o -lm", True), ("-lm", True), ("- -x c", True), ("-shared a.o", True),
        ("-c a.c", False), ("-E a.c", False), ("-S a.c", False), ("-M a.c", False), ("-MM a.c", False),
        ("-MD -MF d a.c", True), ("-MMD -c a.c", False), ("--version", False), ("-v", False),
        ("-print-search-dirs", False), ("-o a", False), ("-fsyntax-only a.c", False), ("-r a.o", False),
        ("-Xlinker a.o", True), ("-include -c a.c", True), ("", False),
        ("-###", False), ("-### a.c", True), ("-dumpmachine", False),
    ],
)  # fmt: skip
def test_whether_clang_links(arguments, answer):
    assert compilers.links(arguments.split()) is answer


def test_response_files_are_looked_into(folder):
    Path("step").write_text('-c "hello.c"')
    Path("all").write_text("@step -o there.o")
    assert not compilers.links(["@all"]) and compilers.links(["@missing"])
    assert quiet("@all") == "" and Path("there.o").is_file()


@pytest.mark.parametrize(
    "argument",
    ["--tombolo-stores=some", "--tombolo-stores", "--tombolo-stores=", "--tombolo-begins=", "--tombolo-x",
     "--tombolo-report="],
)  # fmt: skip
def test_an_unknown_option_of_ours_is_refused(argument):
    with pytest.raises(UserError, match="--tombolo-.*there are --tombolo-stores=static"):
        compilers.parsed([argument, "a.c"])


def test_each_step_works_and_says_nothing(plugin, folder):
    def run() -> str:
        return subprocess.run(["./a.out"], capture_output=True, text=True).stdout

    quiet("hello.c")
    assert run() == "4\n"
    assert "int main(void)" in quiet("-E", "hello.c")
    assert quiet("-M", "hello.c").startswith("hello.o:")
    quiet("-S", "hello.c")
    assert "tombolo_dsm_record" in Path("hello.s").read_text()
    for step in (["-c", "hello.s"], ["hello.o"], ["-c", "-MMD", "hello.c", "-o", "b.o"], ["b.o", "-lm"]):
        quiet(*step)
    assert run() == "4\n" and Path("b.d").is_file()
    for level in ("-O1", "-Os", "-O3", "-Ofast", "-Og"):
        quiet(level, "-Wall", "-Wextra", "-Werror", "hello.c")
        assert run() == "4\n"


def test_without_debugging_information_asked_for_there_is_none(plugin, folder):
    quiet("-S", "-O2", "hello.c")
    assert ".debug" not in Path("hello.s").read_text()


def test_questions_are_answered_by_clang(plugin):
    clang = compilers.clang_of(compilers.need_plugin(), "clang")
    for question in ("--version", "-dumpmachine", "-print-search-dirs", "-dumpversion"):
        said = subprocess.run([clang, question], capture_output=True, text=True).stdout
        assert quiet(question) == said
    assert cc().stderr.endswith("error: no input files\n") and cc("missing.c").returncode == 1


def test_a_mistake_is_clangs_own(plugin, folder):
    Path("wrong.c").write_text("int main(void) { return x; }\n")
    done = cc("wrong.c")
    assert done.returncode == 1 and "wrong.c:1:25: error: use of undeclared identifier 'x'" in done.stderr


def test_several_languages_and_sources(plugin, folder):
    Path("other.cc").write_text(
        '#include <mutex>\nstd::mutex m2; long y; extern "C" long f() { std::lock_guard l(m2); return y = 7; }\n'
    )
    Path("main.c").write_text('#include <stdio.h>\nlong f(void); int main(void) { printf("%ld\\n", f()); return 0; }\n')
    quiet("-std=c++17", "-c", "other.cc", name="cxx")
    quiet("main.c", "other.o", "-lstdc++")
    Path("code").write_text("long f(void) { return 9; }")
    quiet("main.c", "-x", "c", "code", "-o", "both")
    assert subprocess.run(["./both"], capture_output=True, text=True).stdout == "9\n"
    quiet("-std=c++17", "-x", "c++", "other.cc", "-shared", "-fPIC", "-o", "lib.so", name="cxx")
    quiet("main.c", "./lib.so", "-Wl,-rpath,$ORIGIN")
    assert subprocess.run(["./a.out"], capture_output=True, text=True).stdout == "7\n"
    quiet("-flto=thin", "-c", "main.c")
    quiet("-static", "hello.c")
    assert subprocess.run(["./a.out"], capture_output=True, text=True).stdout == "4\n"


def test_cmake_takes_it_as_its_compiler(plugin, folder):
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p C CXX)\nfind_package(Threads REQUIRED)\n"
        "add_library(l SHARED l.cpp)\nadd_executable(hello hello.c)\ntarget_link_libraries(hello l Threads::Threads)\n"
    )
    (folder / "l.cpp").write_text("#include <vector>\nint f() { return (int)std::vector<int>(3).size(); }\n")
    compiler = {"CC": str(BIN / "tombolo-cc"), "CXX": str(BIN / "tombolo-c++")}
    for step in (["cmake", "-S", ".", "-B", "b", "-DCMAKE_BUILD_TYPE=Release"], ["cmake", "--build", "b"]):
        done = subprocess.run(step, capture_output=True, text=True, env={**os.environ, **compiler})
        assert done.returncode == 0 and "warning" not in done.stderr.lower(), done.stdout + done.stderr
    assert subprocess.run(["b/hello"], capture_output=True, text=True).stdout == "4\n"


OURS = (
    "--tombolo-stores=static",
    "--tombolo-stores=page",
    "--tombolo-report[=FILE]",
    "--tombolo-begins=NAME",
    "--help",
)


@pytest.mark.parametrize("arguments", [("--help",), ("-O2", "--help", "a.c")])
@pytest.mark.parametrize(("name", "clang"), [("cc", "clang"), ("cxx", "clang++")])
def test_help_is_about_our_options(name, clang, arguments, tmp_path, monkeypatch):
    """And it needs neither the plugin nor clang."""
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    shown = quiet(*arguments, name=name)
    assert all(option in shown for option in OURS) and len(shown.splitlines()) < 25
    assert shown.splitlines()[-1].endswith(f"--help-hidden, or {clang} --help")


@pytest.mark.parametrize("way", ["the checkout's command", "the package's entry point"])
@pytest.mark.parametrize(
    ("words", "ours"), [("dsm cc", OURS), ("dsm c++", OURS), ("svp compile", ("--emit-cpp", "--show", "cc --help"))]
)
def test_the_command_shows_the_same_help(words, ours, way):
    if way == "the checkout's command":
        done = subprocess.run([ROOT / "tombolo", *words.split(), "--help"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        shown = done.stdout
    else:
        shown = CliRunner().invoke(made(), [*words.split(), "--help"]).output
    assert f"tombolo {words} " in shown and all(option in shown for option in ours)


def test_all_options_of_clang_are_a_word_away(plugin):
    assert len(quiet("--help-hidden").splitlines()) > 1000


def test_without_clang_it_says_how_to_get_it(tmp_path, monkeypatch):
    (tmp_path / "tombolo_stores-77.so").touch()
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    with pytest.raises(UserError, match="there is no clang of version 77: on Debian: apt-get install clang llvm-dev"):
        compilers.command_line("clang", ["a.c"])


def test_without_the_plugin_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    with pytest.raises(UserError, match="the plugin of clang is not in .*: .*TOMBOLO_LIB_DIR|needs LLVM"):
        compilers.command_line("clang", ["a.c"])


def test_a_clang_of_another_version_is_not_taken(tmp_path, monkeypatch):
    plugin_ = tmp_path / "tombolo_stores-77.so"
    fake = tmp_path / "clang"
    fake.write_text("#!/bin/sh\necho 76.0.1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="version 77"):
        compilers.clang_of(plugin_, "clang")
    fake.write_text("#!/bin/sh\necho 77.0.1\n")
    assert compilers.clang_of(plugin_, "clang") == fake


def test_the_command_has_them_too(plugin, folder):
    done = subprocess.run([ROOT / "tombolo", "dsm", "cc", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and "clang version" in done.stdout
    assert libraries.compiler_folders()
