# SPDX-License-Identifier: Apache-2.0
"""Shows how a run gets on: bars on a terminal, a line for each finished point elsewhere."""

import time
from collections.abc import Sequence
from typing import Protocol

from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tombolo.console import console, paragraph

SPEED_SECONDS = 600  # a long memory: points of one kind come in a row


class Point(Protocol):
    """A piece of a run; `cost`: its expected seconds, relative to the other pieces."""

    @property
    def experiment(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def cost(self) -> float: ...


class Failure(Protocol):
    @property
    def why(self) -> str: ...


class Bars:
    """One bar over all points, weighted by their cost, and one for each running point."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=SPEED_SECONDS,
            transient=True,
        )
        self._left = len(points)
        self._all = self._progress.add_task("", total=sum(p.cost for p in points) or 1)
        self._finished = 0.0
        self._running: dict[Point, tuple[TaskID, float]] = {}

    def __enter__(self) -> "Bars":
        self._progress.start()
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @property
    def tasks(self) -> list[Task]:
        """The bars that are shown, that over all points first."""
        return self._progress.tasks

    def started(self, point: Point) -> None:
        task = self._progress.add_task(f"  {point.experiment} {point.name}", total=1.0)
        self._running[point] = (task, 0.0)

    def progressed(self, point: Point, fraction: float) -> None:
        task, _ = self._running[point]
        self._running[point] = (task, fraction)
        self._progress.update(task, completed=fraction)
        self._show()

    def ended(self, point: Point, failure: Failure | None) -> None:
        task, _ = self._running.pop(point)
        self._progress.remove_task(task)
        self._finished += point.cost
        self._left -= 1
        if failure:
            paragraph(f"{point.experiment} {point.name}: {failure.why}", style="red")
        self._show()

    def _show(self) -> None:
        running = sum(point.cost * share for point, (_, share) in self._running.items())
        self._progress.update(self._all, completed=self._finished + running, description=f"{self._left} points left")


class Lines:
    """A line for each point that has ended."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._total, self._ended = len(points), 0
        self._since: dict[Point, float] = {}

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def started(self, point: Point) -> None:
        self._since[point] = time.monotonic()

    def progressed(self, point: Point, fraction: float) -> None:
        pass

    def ended(self, point: Point, failure: Failure | None) -> None:
        self._ended += 1
        seconds = time.monotonic() - self._since.pop(point)
        text = f"{self._ended}/{self._total} {point.experiment} {point.name}: "
        if failure:
            paragraph(text + failure.why, style="red")
        else:
            paragraph(text + f"{seconds:.1f} s")


def watcher(points: Sequence[Point]) -> Bars | Lines:
    return Bars(points) if console.is_terminal else Lines(points)
