# SPDX-License-Identifier: Apache-2.0
"""Busy loops beside a measurement: the host does other work, too."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tombolo import host
from tombolo.errors import UserError

# Looks every few milliseconds whether its parent is still there, which may be killed.
LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(100_000):
        pass
"""


def usual() -> int:
    """As many as give each processor two."""
    return 2 * host.cores()


@contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """Their process ids; all have ended when the block is left, however that happens."""
    loops: list[subprocess.Popen] = []
    try:
        for _ in range(count):
            loops.append(start())
        yield [loop.pid for loop in loops]
        if any(loop.poll() is not None for loop in loops):
            raise UserError("a busy loop ended before the measurement: its numbers mean nothing")
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def start() -> subprocess.Popen:
    """In a session of its own: Ctrl-C is for this command, which then ends the loop."""
    return subprocess.Popen(
        [sys.executable, "-c", LOOP, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
