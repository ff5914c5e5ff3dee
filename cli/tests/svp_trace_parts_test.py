# SPDX-License-Identifier: Apache-2.0
"""The trace of several processes: parts in a folder of the run, one trace at its end, and nothing else."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import svp
from tombolo.errors import UserError

CLI = Path(__file__).parent.parent
PROGRAM = """for rank in $1; do echo '{"traceEvents": [{"name": "of '$rank'", "pid": 1}]}' > $2.$rank; done; exit $3"""


def told(parts: svp.Parts, *ranks: int, status: int = 0) -> int:
    """Of a program whose processes of these ranks leave their parts."""
    which = " ".join(map(str, ranks))
    return parts.run(["sh", "-c", PROGRAM, "program", which, str(parts.path), str(status)], dict(os.environ))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Beside files of the user's that are named as parts."""
    for name in ("trace.json.0", "trace.json.1"):
        (tmp_path / name).write_text("the user's")
    (tmp_path / "trace.json").write_text("of before")
    return tmp_path / "trace.json"


def expect_the_users_files(trace: Path, text: str | None = "of before") -> None:
    assert sorted(path.name for path in trace.parent.iterdir()) == ["trace.json", "trace.json.0", "trace.json.1"]
    assert all((trace.parent / f"trace.json.{n}").read_text() == "the user's" for n in (0, 1))
    assert text is None or trace.read_text() == text


@pytest.mark.parametrize("status", [0, 3])
def test_parts_become_one_trace_and_files_named_alike_stay(trace, status):
    assert told(svp.Parts(trace, 2), 0, 1, status=status) == status
    events = json.loads(trace.read_text())["traceEvents"]
    assert events == [{"name": "of 0", "pid": 1}, {"name": "of 1", "pid": 2}]
    expect_the_users_files(trace, None)


@pytest.mark.parametrize(
    "ranks, says",
    [
        ((0,), "no part of process 1, which was ended before its exit or could not write it"),
        ((), "no process has left its part; one that runs families leaves it when it exits"),
    ],
)
def test_a_trace_that_would_not_be_whole_is_told_and_not_written(trace, capsys, ranks, says):
    assert told(svp.Parts(trace, 2), *ranks) == 1
    assert capsys.readouterr().err == f"tombolo: the trace {trace} is not written: {says}\n"
    assert told(svp.Parts(trace, 2), *ranks, status=7) == 7
    expect_the_users_files(trace)


def test_an_interrupt_between_run_and_merge_leaves_the_trace_of_before(trace, monkeypatch):
    monkeypatch.setattr(svp, "merge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        told(svp.Parts(trace, 2), 0, 1)
    expect_the_users_files(trace)


def test_a_disk_that_is_full_at_the_merge_leaves_the_trace_of_before(trace, monkeypatch):
    parts = svp.Parts(trace, 2)

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match="trace.json cannot be written: No space left on device; the file of before"):
        told(parts, 0, 1)
    monkeypatch.undo()
    expect_the_users_files(trace)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_processes_and_leaves_the_trace_of_before(trace, number):
    code = """
import os, sys
from pathlib import Path
from tombolo import files, svp
files.end_in_order()
parts = svp.Parts(Path(sys.argv[1]), 2)
parts.run(["sh", "-c", "echo half > $1.0; echo $$; exec sleep 600", "program", str(parts.path)], dict(os.environ))
"""
    command = [sys.executable, "-c", code, str(trace)]
    run = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(CLI)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    program = int(run.stdout.readline())
    run.send_signal(number)
    assert run.wait() in (128 + number, -number)
    assert not Path(f"/proc/{program}").exists()
    expect_the_users_files(trace)


def test_a_program_that_does_not_start_is_told(trace):
    with pytest.raises(UserError, match="/nowhere/launcher does not start: No such file or directory"):
        svp.Parts(trace, 2).run(["/nowhere/launcher"], dict(os.environ))
    expect_the_users_files(trace)
