# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tombolo import load
from tombolo.errors import UserError


def runs(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition) -> bool:
    """Time is no part of the check; the limit is for one that never comes true."""
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_the_loops_are_busy_and_end_with_the_block():
    def ticks(pid: int) -> int:
        return sum(int(v) for v in Path(f"/proc/{pid}/stat").read_text().split()[13:15])

    with load.busy_loops(2) as pids:
        assert len(pids) == 2
        for pid in pids:
            before = ticks(pid)
            assert eventually(lambda pid=pid, before=before: ticks(pid) > before + 2)
    assert not any(runs(pid) for pid in pids)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_or_a_failure_ends_the_loops(stop):
    with pytest.raises(stop), load.busy_loops(2) as pids:
        raise stop
    assert not any(runs(pid) for pid in pids)


def test_the_loops_end_when_the_command_is_killed():
    program = (
        "from tombolo import load\nimport time\n"
        "with load.busy_loops(2) as pids:\n  print(*pids, flush=True)\n  time.sleep(600)\n"
    )
    here = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pids = [int(pid) for pid in here.stdout.readline().split()]
    assert len(pids) == 2 and all(runs(pid) for pid in pids)
    here.kill()
    here.communicate()
    assert eventually(lambda: not any(runs(pid) for pid in pids))


def test_a_loop_that_ended_early_is_told(monkeypatch):
    monkeypatch.setattr(load, "LOOP", "")
    with pytest.raises(UserError), load.busy_loops(1) as pids:
        assert eventually(lambda: not runs(pids[0]))
