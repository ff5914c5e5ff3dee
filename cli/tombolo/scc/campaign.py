# SPDX-License-Identifier: Apache-2.0
"""Measures the missing points of some experiments and keeps them."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tombolo import host, paths, progress
from tombolo.console import paragraph
from tombolo.errors import UserError
from tombolo.scc import catalogue, chips, native, statistics
from tombolo.scc.native import Point, Setting
from tombolo.scc.pool import Failure, Interrupted, Outcome, Pool
from tombolo.scc.store import Done, Key, Store

MEMORY_SHARE = 0.9  # of the free memory: the rest is for this command and for others
GIB = 1 << 30


@dataclass(frozen=True)
class Ended:
    """How a run ended, and its file."""

    store: Store
    measured: int
    there: int  # were there from an earlier run
    failures: list[Failure]


def choose(program: Path, names: list[str]) -> list[str]:
    """The experiments to run: those named, or all that are not long; the error for another names
    all."""
    offered = list(native.offers(program))
    for name in names:
        if name not in offered:
            raise UserError(f"there is no experiment '{name}'; choose of {', '.join(offered)}")
    known = catalogue.load().experiments
    return list(dict.fromkeys(names)) or [name for name in offered if not (name in known and known[name].long)]


def with_points(setting: Setting) -> set[str]:
    """The experiments of which the set has a point."""
    offered = native.offers(native.locate()).values()
    return {o.experiment for o in offered if (o.quick_points if setting.quick else o.points)}


def planned(program: Path, experiments: set[str], setting: Setting) -> set[Key]:
    """The points of those of the experiments that the program has."""
    names = [name for name in native.offers(program) if name in experiments]
    return {(p.experiment, p.name) for name in names for p in native.plan(program, name, setting)}


def run(
    names: list[str],
    setting: Setting,
    jobs: int | None,
    fresh: bool,
    wanted: Callable[[Point], bool] = lambda _: True,
) -> Ended:
    """Measures the wanted points of the experiments that are not in the file yet; all if `fresh`.

    An interrupt keeps the finished points, says how to go on and ends the command.
    """
    chips.load(setting.chip)  # refused before anything is built
    program = native.locate()
    of_all = (p for name in choose(program, names) for p in native.plan(program, name, setting))
    planned = [point for point in of_all if wanted(point)]
    store = Store(program, setting)
    done = {} if fresh else store.load().done
    shown = _shown(catalogue.load())
    missing = [p for p in planned if not _is_there(done.get((p.experiment, p.name)), shown(p))]
    free = int(host.free_memory() * MEMORY_SHARE)
    fitting, failures = _fitting(missing, free)
    if fitting:
        store.begin()
        with progress.watcher(fitting) as watcher:
            keep = _keeper(store, statistics.folder(setting, native.digest(program)), shown)
            pool = Pool(program, setting, jobs or host.cores(), free, keep, watcher, shown)
            failures += _measure(pool, fitting, store)
    failures = _without_deadlocks(failures, store)
    return Ended(store, len(missing) - len(failures), len(planned) - len(missing), failures)


def _shown(known: catalogue.Catalogue) -> Callable[[Point], bool]:
    """Whether the report shows the statistics of a point: its experiment's file names it."""

    def shown(point: Point) -> bool:
        made = known.experiments.get(point.experiment)
        return made is not None and point.name in made.statistics

    return shown


def _is_there(done: Done | None, shown: bool) -> bool:
    return done is not None and (done.use is not None or not shown)


def _keeper(store: Store, folder: Path, shown: Callable[[Point], bool]) -> Callable[[Point, Outcome], None]:
    """Keeps the values of a point, and its statistics if they are shown."""

    def keep(point: Point, told: Outcome) -> None:
        about = dict(told.about or {})
        runs = [statistics.read(line) for line in told.statistics]
        if runs:
            statistics.save(runs, folder)
        if shown(point):
            about["use"] = statistics.use(statistics.longest(runs)) if runs else {}
        store.keep(point, told.lines, about)

    return keep


def _fitting(points: list[Point], free: int) -> tuple[list[Point], list[Failure]]:
    """The points that memory allows, and why not for each other; a UserError if none fits."""
    large = [point for point in points if point.memory > free]
    if not large:
        return points, []
    least = min(large, key=lambda point: point.memory)
    sentence = (
        f"needs {least.memory / GIB:.1f} GiB of memory and {free / GIB:.1f} GiB can be had: "
        "end other programs, or run it on a larger machine"
    )
    if len(large) == len(points):
        raise UserError(f"{least.experiment} {least.name} {sentence}")
    failures = [Failure(p, f"needs {p.memory / GIB:.1f} GiB of memory; {free / GIB:.1f} GiB can be had") for p in large]
    return [point for point in points if point not in large], failures


def _without_deadlocks(failures: list[Failure], store: Store) -> list[Failure]:
    """Keeps the deadlocks. One that a claim is about is a finding, and no failure."""
    known, rest = catalogue.load().experiments, []
    for failure in failures:
        if failure.deadlock:
            store.deadlocked(failure.point)
        if not (failure.deadlock and _claimed(known.get(failure.point.experiment), failure.point)):
            rest.append(failure)
    return rest


def _claimed(experiment: catalogue.Experiment | None, point: Point) -> bool:
    claims = experiment.claims if experiment else ()
    return any(c.points and fnmatchcase(point.name, c.points) for c in claims)


def _measure(pool: Pool, points: list[Point], store: Store) -> list[Failure]:
    try:
        return pool.run(points)
    except Interrupted as interrupted:
        kept = len(store.load().done)
        paragraph(f"interrupted: {kept} finished points are in {paths.shown(store.path)}")
        paragraph(f"to go on: {again()}")
        raise SystemExit(128 + interrupted.number) from None


def again() -> str:
    """The command line that goes on where this one was interrupted."""
    return shlex.join(["tombolo", *(each for each in sys.argv[1:] if each != "--fresh")])


def grouped(failures: list[Failure]) -> list[str]:
    """A sentence for each kind of failure, with the points that it befell."""
    by_why: dict[str, list[Point]] = {}
    for failure in failures:
        by_why.setdefault(failure.why, []).append(failure.point)
    return [f"{_named(points)}: {why}" for why, points in by_why.items()]


def _named(points: list[Point]) -> str:
    first = f"{points[0].experiment} {points[0].name}"
    return first if len(points) == 1 else f"{first} and {len(points) - 1} more"
