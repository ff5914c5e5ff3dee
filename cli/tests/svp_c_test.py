# SPDX-License-Identifier: Apache-2.0
"""Families of C programs: tombolo/svp.h in C99, used rightly and wrongly."""

import signal
import subprocess
from pathlib import Path

import pytest
from tombolo import libraries, paths, svp
from tombolo.app import app
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


@pytest.fixture(scope="module")
def check(tmp_path_factory) -> Path:
    libraries.need_program(svp.LIBRARY_OF_C)
    flags = CliRunner().invoke(app, ["svp", "flags", "--c"]).stdout.split()
    program = tmp_path_factory.mktemp("svp_c") / "svp_check"
    source = paths.checkout() / "svp/api/svp_check.c"
    subprocess.run(["cc", *OPTIONS, source, "-o", program, *flags], check=True)
    return program


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


def test_the_examples_are_c99(tmp_path):
    for source in (paths.checkout() / "examples/svp").glob("*.c"):
        program = tmp_path / source.stem
        subprocess.run(["cc", *OPTIONS, source, "-o", program, *svp.flags_of_c()], check=True)
        assert run(program).returncode == 0
