# SPDX-License-Identifier: Apache-2.0
import stat
from pathlib import Path

import pytest
from tombolo.mpis import Mpi
from tombolo.suite import runner
from tombolo.suite.runner import Setting
from tombolo.suite.testlist import Test


@pytest.mark.parametrize(
    ("stdout", "status", "passed"),
    [
        (" No Errors\n", 0, True),
        ("talk\n No Errors\n", 0, True),
        (" No Errors\n", 1, False),
        ("Found 3 errors\n", 0, False),
        ("", 0, False),
    ],
)
def test_a_test_passes_by_its_word_and_its_status(stdout, status, passed):
    assert runner.succeeded(stdout, status) is passed


def test_a_complaint_is_the_first_line_that_says_something():
    output = "exit 1\n\n---\ntombolo: stats rank=0\n0: found 3, expected 4\n"
    assert runner.complaint(output) == "0: found 3, expected 4"


@pytest.fixture
def launcher(tmp_path: Path) -> Mpi:
    """A stand-in for mpiexec that runs the program once."""
    script = tmp_path / "mpiexec"
    script.write_text('#!/bin/bash\nshift 2\nexec "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return Mpi("mpich", script, None, None)


def program(build: Path, body: str) -> Test:
    path = build / "rma" / "probe"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return Test("rma", "probe", 2)


def test_a_passing_program_passes_even_with_words_on_stderr(launcher, tmp_path):
    test = program(tmp_path, "echo ' No Errors'; echo 'tombolo: stats {\"windows_served\": 1}' >&2")
    verdict = runner.run(test, launcher, tmp_path, Setting("stock"), 10)
    assert (verdict.verdict, verdict.served) == ("passed", 1)


def test_a_program_that_hangs_is_stopped_with_its_children(launcher, tmp_path):
    test = program(tmp_path, "setsid sleep 300 & echo $! > child; sleep 300")
    verdict = runner.run(test, launcher, tmp_path, Setting("stock"), 1)
    assert verdict.verdict == "timeout"
    child = (tmp_path / "rma" / "child").read_text().strip()
    state = Path(f"/proc/{child}/status")
    assert not state.exists() or "zombie" in state.read_text()


def test_a_program_that_was_not_built_is_not_a_pass(launcher, tmp_path):
    verdict = runner.run(Test("rma", "absent", 2), launcher, tmp_path, Setting("stock"), 1)
    assert verdict.verdict == "not built"
    assert not verdict.passed


def test_a_rank_that_died_of_a_signal_is_a_crash():
    mpich = "=   YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)"
    openmpi = "process rank 1 with PID 0 on node here exited on signal 7 (Bus error)."
    assert runner.judged(mpich, "", 11) == "crashed"
    assert runner.judged("", openmpi, 135) == "crashed"
    assert runner.judged("Found 3 errors\n", "", 1) == "failed"
    assert runner.judged(" No Errors\n", "", 0) == "passed"
