# SPDX-License-Identifier: Apache-2.0
"""Measures points in processes of their own, as many at once as asked for and as memory allows.

The longest go first. A point that fails is remembered and the others go on; an interrupt ends the
processes and leaves the finished points with the caller.
"""

import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Protocol

from tombolo.scc import native
from tombolo.scc.native import Point, Setting

GRACE_SECONDS = 2
NUMBERS = (signal.SIGINT, signal.SIGTERM)
DEADLOCK = re.compile(r"\bdeadlock: \d+ of \d+ cores wait")  # the simulator's words


class Interrupted(BaseException):
    """SIGINT or SIGTERM came; all processes have been ended."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(frozen=True)
class Failure:
    point: Point
    why: str

    @property
    def deadlock(self) -> bool:
        """Whether the simulated program waits for ever."""
        return DEADLOCK.search(self.why) is not None


class Watcher(Protocol):
    """Is told how the points get on, on the caller's thread."""

    def started(self, point: Point) -> None: ...
    def progressed(self, point: Point, fraction: float) -> None: ...
    def ended(self, point: Point, failure: Failure | None) -> None: ...


@dataclass
class Outcome:
    """The output and end of one process."""

    lines: list[dict] = field(default_factory=list)
    statistics: list[dict] = field(default_factory=list)  # of its simulations
    about: dict | None = None  # the line that says the point is done
    bad_line: str | None = None
    status: int = 0
    complaint: str = ""

    def failure(self, point: Point) -> Failure | None:
        """Why its lines do not count; None where they do."""
        if self.status != 0:
            return Failure(point, f"{native.ending(self.status)}: {self.complaint or 'no message'}")
        if self.bad_line is not None:
            return Failure(point, f"printed a line that is none of the protocol: {self.bad_line}")
        if self.about is None:
            return Failure(point, "ended without saying that the point is done")
        return None


@dataclass
class Process:
    """A running point; its thread reads its output and tells the pool."""

    point: Point
    child: subprocess.Popen
    thread: threading.Thread | None = None


class Pool:
    def __init__(
        self,
        program: Path,
        setting: Setting,
        jobs: int,
        memory: int,
        keep: Callable[[Point, Outcome], None],
        watcher: Watcher,
        with_statistics: Callable[[Point], bool] = lambda _: False,
    ) -> None:
        """`memory`: bytes for all processes; `keep` gets the output of each finished point."""
        self._program, self._setting = program, setting
        self._jobs, self._memory = max(1, jobs), memory
        self._keep, self._watcher = keep, watcher
        self._with_statistics = with_statistics
        self._running: dict[Point, Process] = {}
        self._news: queue.SimpleQueue[tuple[Point, float | Outcome]] = queue.SimpleQueue()
        self._signals = Signals()

    def run(self, points: list[Point]) -> list[Failure]:
        """Measures all; raises Interrupted on SIGINT and SIGTERM when the processes are gone."""
        waiting = sorted(points, key=lambda point: -point.cost)
        failures: list[Failure] = []
        with self._signals.raised():
            try:
                while waiting or self._running:
                    self._fill(waiting)
                    self._hear(failures)
            finally:
                self._end_all()
        return failures

    def _fill(self, waiting: list[Point]) -> None:
        while len(self._running) < self._jobs and (point := self._next(waiting)):
            waiting.remove(point)
            self._start(point)

    def _next(self, waiting: list[Point]) -> Point | None:
        """The longest that fits into memory beside the running ones; alone, any."""
        if waiting and not self._running:
            return waiting[0]
        used = sum(point.memory for point in self._running)
        return next((p for p in waiting if used + p.memory <= self._memory), None)

    def _start(self, point: Point) -> None:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (read after the process has ended)
        with self._signals.held():  # an interrupt ends those that _running names
            child = subprocess.Popen(
                native.command(self._program, point, self._setting, self._with_statistics(point)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env=native.environment(),
                start_new_session=True,  # a terminal's Ctrl-C is ours to hand on
            )
            process = Process(point, child)
            self._running[point] = process
        process.thread = threading.Thread(target=self._listen, args=(process, errors), daemon=True)
        process.thread.start()
        self._watcher.started(point)

    def _listen(self, process: Process, errors: IO[bytes]) -> None:
        """Tells the outcome whatever happens here: the pool waits for it."""
        outcome = Outcome()
        try:
            for line in process.child.stdout or ():
                self._take(process.point, line, outcome)
            outcome.status = process.child.wait()
            with errors:
                errors.seek(0)
                outcome.complaint = _complaint(errors.read().decode(errors="replace"))
        except Exception as mistake:
            _signal_group(process.child, signal.SIGKILL)
            outcome.status = process.child.wait()
            outcome.complaint = f"its output could not be read: {mistake}"
        finally:
            self._news.put((process.point, outcome))

    def _take(self, point: Point, line: str, outcome: Outcome) -> None:
        record = native.parse(line)
        if record is not None and isinstance(record.get("progress"), int | float):
            self._news.put((point, float(record["progress"])))
        elif record is not None and record.get("point_done") == point.name:
            outcome.about = record
        elif record is not None and record.get("statistics") == point.name:
            outcome.statistics.append(record)
        elif record is not None and native.complete(record):
            outcome.lines.append(record)
        elif line.strip() and outcome.bad_line is None:
            outcome.bad_line = line.strip()[:120]

    def _hear(self, failures: list[Failure]) -> None:
        point, news = self._news.get()
        if isinstance(news, float):
            self._watcher.progressed(point, news)
            return
        del self._running[point]
        failure = news.failure(point)
        if failure:
            failures.append(failure)
        else:
            self._keep(point, news)
        self._watcher.ended(point, failure)

    def _end_all(self) -> None:
        for process in self._running.values():
            _signal_group(process.child, signal.SIGTERM)
        for process in self._running.values():
            try:
                process.child.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                _signal_group(process.child, signal.SIGKILL)
                process.child.wait()
        self._running.clear()


class Signals:
    """SIGINT and SIGTERM as Interrupted, on the main thread."""

    def __init__(self) -> None:
        self._held = False
        self._came: int | None = None

    @contextmanager
    def raised(self) -> Iterator[None]:
        """They raise within."""
        before = {each: signal.signal(each, self._interrupt) for each in NUMBERS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """One that comes within raises at its end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._came is not None:
                raise Interrupted(self._came)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        for each in NUMBERS:
            signal.signal(each, signal.SIG_IGN)  # until the processes are ended
        self._came = number
        if not self._held:
            raise Interrupted(number)


def _signal_group(child: subprocess.Popen, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _complaint(text: str) -> str:
    """The line that tells of a deadlock, or the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = [line for line in lines if DEADLOCK.search(line)] or lines
    return chosen[-1].removeprefix(f"{native.NAME}: ")[:300] if chosen else ""
