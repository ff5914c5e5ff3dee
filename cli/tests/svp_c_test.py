# SPDX-License-Identifier: Apache-2.0
"""Families of C programs: tombolo/svp.h in C99, used rightly and wrongly."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import libraries, paths, svp
from tombolo.app import made
from typer.testing import CliRunner

OPTIONS = ["-std=c99", "-pedantic", "-O1", "-Wall", "-Wextra", "-Werror"]
MISTAKES = {
    "step": "create: a family from 0 to 3 with step 0",
    "twice": "sync: this family was not created, or was synced before",
    "another": "sync: by a thread that has not created the family",
    "left": "thread 0 of a family returned with 1 families not synced",
    "outside": "break: outside of all families",
    "ended": "create: the place does not exist any more",
    "rewritten": "write: a global channel was written before, or its family was synced",
    "unwritten": "read: the parent synced without a write to this global channel",
    "large": "shared_init: values of 65 bytes; from 1 to 64 are possible",
    "parent": "shared_write: no thread of a family with this shared channel runs",
}


MISTAKES_OF_PROCESSES = {
    "unknown": "create_named: there is no function nothing",
    "process": "place: there is no process 9 of 2",
    "step": "create: a family from 0 to 3 with step 0",
    "left": "thread 0 of a family returned with 1 families not synced",
    "outside": "Job::here: outside of svp::run()",
    "entered twice": "enter: there is a function ends already",
    "no elements": "enter: function empty has a parameter of flow 1 with elements of 0 bytes",
}
COMMAND = [sys.executable, "-P", str(Path(svp.__file__).parent / "__main__.py")]


def compiled(name: str, folder: Path) -> Path:
    libraries.need_program(svp.LIBRARY_OF_C)
    flags = CliRunner().invoke(made(), ["svp", "flags", "--c"]).stdout.split()
    source = paths.checkout() / f"svp/api/{name}.c"
    subprocess.run(["cc", *OPTIONS, source, "-o", folder / name, *flags], check=True)
    return folder / name


@pytest.fixture(scope="module")
def check(tmp_path_factory) -> Path:
    return compiled("svp_check", tmp_path_factory.mktemp("svp_c"))


@pytest.fixture(scope="module")
def processes_check(tmp_path_factory) -> Path:
    return compiled("svp_processes_check", tmp_path_factory.mktemp("svp_c"))


def run(*words) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)


def test_all_calls_do_as_the_header_says(check):
    done = run(check)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "28 passed, 0 failed\n"


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_the_program_with_its_cause(check, name):
    done = run(check, name)
    assert done.returncode == -signal.SIGABRT, done.stdout + done.stderr
    assert done.stderr.startswith(f"tombolo: {MISTAKES[name]} ("), done.stderr
    assert done.stdout == ""


def test_families_run_where_there_is_one_process(processes_check):
    done = run(processes_check)
    assert (done.returncode, done.stdout) == (0, "27 passed, 0 failed\n"), done.stderr


def test_families_run_in_other_processes(processes_check):
    done = run(*COMMAND, "svp", "run", "-n", 3, "--machine", "stale", processes_check)
    assert (done.returncode, done.stdout) == (0, "82 passed, 0 failed\n"), done.stderr
    done = run(libraries.need_program(svp.LAUNCHER), 3, processes_check)
    assert (done.returncode, done.stdout) == (0, "82 passed, 0 failed\n"), done.stderr


@pytest.mark.parametrize(("end", "status"), [("break", 9), ("fail", 8)])
def test_a_program_returns_the_number_of_its_end(processes_check, end, status):
    launcher = libraries.need_program(svp.LAUNCHER)
    assert run(launcher, 2, processes_check, end).returncode == status


def test_a_program_whose_threads_get_no_memory_returns_1_with_a_message(processes_check):
    done = run(processes_check, "no memory")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    cause = "the host has no thread for the first family of the program: Resource temporarily unavailable"
    assert done.stderr.startswith(f"tombolo: {cause}; see ulimit -u and -v"), done.stderr


@pytest.mark.parametrize("name", MISTAKES_OF_PROCESSES)
def test_a_mistake_in_several_processes_ends_the_program_with_its_cause(processes_check, name):
    done = run(libraries.need_program(svp.LAUNCHER), 2, processes_check, name)
    assert done.returncode == 128 + signal.SIGABRT, done.stdout + done.stderr
    assert done.stderr.startswith(f"tombolo: {MISTAKES_OF_PROCESSES[name]} ("), done.stderr


def test_the_examples_are_c99(tmp_path):
    for source in (paths.checkout() / "examples/svp").glob("*.c"):
        program = tmp_path / source.stem
        subprocess.run(["cc", *OPTIONS, source, "-o", program, *svp.flags_of_c()], check=True)
        assert run(program).returncode == 0
