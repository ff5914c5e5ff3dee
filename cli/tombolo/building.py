# SPDX-License-Identifier: Apache-2.0
"""Has make build parts of a checkout, and tells how far it is; its output is shown only where that fails."""

import fcntl
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tombolo import files, host
from tombolo.errors import UserError

LINES_SHOWN = 30
# Set by an outer make for an inner one: its options and targets are not for this build.
OUTER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
NINJA_STATUS = "[%f/%t] "
STEP = re.compile(r"\[(\d+)/(\d+)\] ")
PROCESSOR_MINUTES = 12  # of `make native` from the beginning, about
LINE_SECONDS = 20  # between two lines where there is no terminal


class Progress:
    """Says on stderr, as another program may read stdout, which part is built and how much of it is done: on one
    line of a terminal, else in a line now and then. Is silent before there is something to do, if
    `only_if_needed`."""

    def __init__(self, what: str, root: Path, target: str, only_if_needed: bool) -> None:
        self._what, self._root, self._target = what, root, target
        self._since = self._told = time.monotonic()
        self._announced = self._on_line = False
        if not only_if_needed:
            self._announce()

    def _announce(self) -> None:
        takes = "some minutes"
        if not list((self._root / "build").glob("*/build.ninja")):
            minutes = -(-PROCESSOR_MINUTES // host.cores())
            takes = f"the first time, up to about {minutes} minutes on {host.cores()} processors"
        self._announced = True
        print(f"building {self._what} (make {self._target}: {takes}) ...", file=sys.stderr, flush=True)

    def saw(self, line: str) -> None:
        """A line of make's output."""
        step = STEP.match(line)
        if step is None:
            return
        if not self._announced:
            self._announce()
        now = time.monotonic()
        done, total = int(step[1]), int(step[2])
        text = f"[{done}/{total}] {self._what}{self._left(done, total, now - self._since)}"
        if sys.stderr.isatty():
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
            self._on_line = True
        elif now - self._told >= LINE_SECONDS:
            self._told = now
            print(text, file=sys.stderr, flush=True)

    @staticmethod
    def _left(done: int, total: int, seconds: float) -> str:
        if done * 20 < total or seconds < 5:  # too few to tell
            return ""
        left = seconds / done * (total - done)
        return f", about {left:.0f} s left" if left < 90 else f", about {left / 60:.0f} minutes left"

    def end(self) -> None:
        if self._on_line:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def build(what: str, root: Path, target: str, *settings: str, only_if_needed: bool = False) -> None:
    """Makes a target of the checkout. `only_if_needed`: all of it may be there, of which nothing is said."""
    env = {name: value for name, value in os.environ.items() if name not in OUTER_MAKE}
    progress = Progress(what, root, target, only_if_needed)
    last: deque[str] = deque(maxlen=LINES_SHOWN)
    try:
        with subprocess.Popen(
            ["make", "-C", root, target, "QUIET=", *settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env | {"NINJA_STATUS": NINJA_STATUS},
        ) as made:
            for line in made.stdout or ():
                progress.saw(line)
                last.append(line.rstrip("\n"))
    except OSError as mistake:
        raise UserError(f"{what} cannot be built: make: {mistake.strerror}") from None
    finally:
        progress.end()
    if made.returncode != 0:
        end = "\n".join(last)
        raise UserError(
            f"{what} cannot be built: `make {target}` ended with status {made.returncode}; "
            f"the end of its output:\n{end}"
        )


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """While no other command builds in this checkout."""
    lock_file = files.folder(root / "build") / ".lock"
    files.append(lock_file, "")  # is there from here on
    with lock_file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("tombolo: waits for another command that builds in this checkout", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
