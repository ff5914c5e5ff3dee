# SPDX-License-Identifier: Apache-2.0
"""A line now and then, on standard error, about a program in several processes that runs for long.

The program takes the place of the command. The lines come from a process beside it, which is no
child of the program, has none of its descriptors but standard error, and ends when it ends.
"""

import os
import select
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

EVERY_SECONDS = 10
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Time of a process on processors up to now, in seconds."""

    program: float
    kernel: float


def spent(pid: int) -> Spent | None:
    """None if there is no such process."""
    try:
        # Behind the name in parentheses, which may have spaces: the fields 14 and 15 of proc(5).
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return Spent(int(fields[11]) / TICKS, int(fields[12]) / TICKS)


def family(pid: int) -> list[int]:
    """The process and all below it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:  # the thread has ended
                continue
    return found


def sample(pid: int) -> dict[int, Spent]:
    return {each: used for each in family(pid) if (used := spent(each)) is not None}


def line(elapsed: float, seconds: float, before: dict[int, Spent], now: dict[int, Spent]) -> str:
    """Of the last `seconds`; `elapsed` since the start."""
    zero = Spent(0, 0)
    program = sum(used.program - before.get(pid, zero).program for pid, used in now.items())
    kernel = sum(used.kernel - before.get(pid, zero).kernel for pid, used in now.items())
    minutes, rest = divmod(round(elapsed), 60)
    return (
        f"tombolo: {minutes}:{rest:02} {len(now)} process{'' if len(now) == 1 else 'es'}, "
        f"{(program + kernel) / seconds:.1f} processors busy, {kernel / seconds:.1f} of them in the kernel"
    )


def tell(pid: int, watched: int, every: float) -> None:
    """Lines until the process, of which `watched` is a descriptor, has ended."""
    started = last = time.monotonic()
    before = sample(pid)
    while not select.select([watched], [], [], every)[0]:
        now, at = sample(pid), time.monotonic()
        print(line(at - started, at - last, before, now), file=sys.stderr, flush=True)
        before, last = now, at


def begin(every: float) -> None:
    """For this process, which becomes the program at once. Where the system has no room for it, or
    forbids it, there are no lines."""
    pid = os.getpid()
    try:
        watched = os.pidfd_open(pid)
    except OSError:
        return
    try:
        child = os.fork()
    except OSError:
        os.close(watched)
        return
    if child != 0:
        os.waitpid(child, 0)
        os.close(watched)
        return
    # The child ends at once, so that the process beside the program is not the program's child.
    try:
        if os.fork() == 0:
            _beside(pid, watched, every)
    finally:
        os._exit(0)


def _beside(pid: int, watched: int, every: float) -> None:
    kept = 3
    try:
        # The terminal's ^C is for the program.
        os.setsid()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        os.dup2(watched, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
        tell(pid, kept, every)
    except OSError:  # standard error is gone
        pass
    finally:
        os._exit(0)
