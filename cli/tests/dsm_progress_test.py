# SPDX-License-Identifier: Apache-2.0
"""The lines about a program that runs for long."""

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tombolo import dsm, dsm_progress
from tombolo.dsm_progress import Spent

COMMAND = [sys.executable, "-P", str(Path(dsm.__file__).parent / "__main__.py")]
LINE = re.compile(
    r"tombolo: \d+:\d\d \d+ process(es)?, \d+\.\d processors busy, \d+\.\d of them in the kernel"
)
SLEEP = [shutil.which("sleep"), "2"]


def run(*options: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, "dsm", "run", *options, *SLEEP], text=True, timeout=120, check=False, **more
    )


def test_a_line_is_of_the_last_seconds_and_of_all_processes() -> None:
    before = {10: Spent(5, 1), 11: Spent(100, 100)}
    now = {10: Spent(7, 2), 12: Spent(3, 0)}  # 11 has ended, 12 is new
    assert dsm_progress.line(125, 2, before, now) == (
        "tombolo: 2:05 2 processes, 3.0 processors busy, 0.5 of them in the kernel"
    )
    assert dsm_progress.line(9, 1, {}, {10: Spent(0, 0)}).startswith("tombolo: 0:09 1 process, ")


def test_all_processes_of_a_program_are_found() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 100 & echo $!; wait"], stdout=subprocess.PIPE) as shell:
        child = int(shell.stdout.readline())
        assert set(dsm_progress.sample(shell.pid)) == {shell.pid, child}
        os.kill(child, 9)
    assert dsm_progress.sample(shell.pid) == {}


def test_lines_come_where_they_are_asked_for() -> None:
    asked = run("--progress", "0.1", capture_output=True)
    assert asked.returncode == 0
    lines = asked.stderr.splitlines()
    assert lines and all(LINE.fullmatch(line) for line in lines)
    # Standard error is no terminal, or none are wanted.
    for options in ([], ["--progress", "0"]):
        assert run(*options, capture_output=True).stderr == ""


def test_a_terminal_has_lines_unasked() -> None:
    main, terminal = pty.openpty()
    script = (
        "import os; from tombolo import dsm_progress; dsm_progress.EVERY_SECONDS = 0.1;"
        "from tombolo.commands.dsm import start;"
        f"start({SLEEP}, dict(os.environ), False, None)"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        stderr=terminal,
        timeout=120,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(dsm.__file__).parent.parent)},
    )
    os.close(terminal)
    shown = os.read(main, 10000).decode()
    os.close(main)
    assert LINE.match(shown), shown


def test_the_program_has_no_child_and_its_output_ends_with_it() -> None:
    script = (
        "import os, signal, sys\nfrom tombolo import dsm_progress\n"
        "before = set(os.listdir('/proc/self/fd'))\n"
        "dsm_progress.begin(0.05)\n"
        "assert set(os.listdir('/proc/self/fd')) == before\n"
        "try:\n    os.waitpid(-1, 0)\nexcept ChildProcessError:\n    print('none', flush=True)\n"
        "sys.stdin.readline()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(dsm.__file__).parent.parent)},
    ) as program:
        assert LINE.match(program.stderr.readline())
        # Returns when the pipes have no writer left.
        told, _ = program.communicate("end\n", timeout=120)
    assert (program.returncode, told) == (-9, "none\n")


def test_a_program_runs_without_lines_where_they_cannot_be(monkeypatch) -> None:
    def refused(*_):
        raise OSError("no")

    before = set(os.listdir("/proc/self/fd"))
    for name in ("pidfd_open", "fork"):
        with monkeypatch.context() as context:
            context.setattr(os, name, refused)
            dsm_progress.begin(1)
    assert set(os.listdir("/proc/self/fd")) == before
