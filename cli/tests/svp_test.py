# SPDX-License-Identifier: Apache-2.0
"""Programs of families, compiled and started by the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import libraries, paths, svp
from tombolo.app import app
from typer.testing import CliRunner

COMMAND = [sys.executable, "-P", str(Path(svp.__file__).parent / "__main__.py")]

WORKERS = r"""
#include <cstdio>
#include <cstdlib>
#include "svp/svp.h"
namespace svp = tombolo::svp;

int main(int argc, char** argv) {
  unsigned workers = 0;
  auto family = svp::create([&] { workers = svp::Worker::here()->pool().size(); });
  family.sync().rethrow();
  std::printf("%u workers\n", workers);
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    """The archive and the launcher, built before any test has a time limit."""
    libraries.need_program(svp.ARCHIVE)
    libraries.need_program(svp.LAUNCHER)


@pytest.fixture(scope="module")
def compile_cpp(tmp_path_factory):
    def compile_text(name: str, text: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        source, program = folder / f"{name}.cpp", folder / name
        source.write_text(text)
        options = ["-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["c++", *options, source, "-o", program, *svp.flags()], check=True)
        return program

    return compile_text


@pytest.fixture(scope="module")
def workers(compile_cpp):
    return compile_cpp("workers", WORKERS)


def run(*words, **environment) -> subprocess.CompletedProcess:
    argv = [*COMMAND, "svp", "run", *map(str, words)]
    env = os.environ | environment
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120)


def told(*words) -> str:
    """The message of a command line that is refused."""
    result = CliRunner().invoke(app, ["svp", *words])
    assert result.exception is not None
    return str(result.exception)


def test_a_program_has_the_workers_that_were_asked_for(workers):
    done = run("--workers", 3, workers)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 workers\n", "")
    assert run(workers, TOMBOLO_SVP_WORKERS="1").stdout == "1 workers\n"
    assert run(workers).stdout == f"{len(os.sched_getaffinity(0))} workers\n"


def test_the_status_of_the_program_is_the_commands(workers):
    assert run(workers, "7").returncode == 7
    assert run("-n", 2, workers, "7").returncode == 7


@pytest.mark.parametrize("text", ["0", "many", "1025", "-1"])
def test_a_number_of_workers_that_is_none_ends_the_program(workers, text):
    done = run(workers, TOMBOLO_SVP_WORKERS=text)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tombolo: TOMBOLO_SVP_WORKERS is '{text}'; it may be a number from 1 to 1024\n"


def test_several_processes_find_each_other(workers):
    done = run("-n", 3, "--workers", 2, workers)
    assert (done.returncode, done.stdout) == (0, "2 workers\n" * 3), done.stderr


def test_options_between_processes_need_several(workers):
    for option in (["--machine", "coherent"], ["--seed", "3"]):
        assert f"{option[0]}: one process" in told("run", *option, str(workers))
    assert "is not a machine" in told("run", "-n", "2", "--machine", "nowhere", str(workers))
    assert "no_program" in told("run", "no_program")


def test_show_prints_the_command_line(workers):
    result = CliRunner().invoke(app, ["svp", "run", "--show", "-n", "4", str(workers), "-x"])
    assert result.stdout.split()[1:] == ["4", str(workers), "-x"]
    result = CliRunner().invoke(app, ["svp", "run", "--show", str(workers), "-x"])
    assert result.stdout.split() == [str(workers), "-x"]


def test_the_examples_compile_with_the_flags_that_are_told(tmp_path):
    flags = CliRunner().invoke(app, ["svp", "flags"]).stdout.split()
    for source in (paths.checkout() / "examples/svp").glob("*.cpp"):
        subprocess.run(["c++", "-O1", source, "-o", tmp_path / source.stem, *flags], check=True)
        done = subprocess.run([tmp_path / source.stem], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
