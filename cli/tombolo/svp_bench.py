# SPDX-License-Identifier: Apache-2.0
"""Families beside other run-times: programs that each measure some of them, run in turn."""

import ctypes.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tombolo import files, launch, libraries, mpis, paths
from tombolo.errors import UserError

PROGRAM = "tombolo-svp-bench"
REMOTE_PROGRAM = "tombolo-svp-remote-bench"
LAUNCHER = "tombolo-svp"
OURS = "families"
LLVM_OPENMP = "OpenMP of LLVM"
TIME_LIMIT_S = 600
# No other run-time may be quicker by more.
WORST_RATIO = 1.2
# Nor the ping-pong of an MPI, than a family that goes there and back over it.
WORST_RATIO_TO_MPI = 1.5
FASTEST_OF_ALL = ("fib", "skynet", "loop")
# ns a task, by workers (families alone).
GOALS = {
    ("fib", 1): 8.0,
    ("fib", 2): 5.0,
    ("chain", 1): 30.0,
    ("remote, polling", 1): 1000.0,
    ("remote, asleep", 1): 8000.0,
}
# That much more than another row, with as many workers.
GOALS_BEYOND = {"remote, 1 MiB by address": ("remote, polling", 2000.0)}
# Of the time of one worker, by the workers and their time: no less, or that part of the efficiency
# of threads that share nothing, since processors may share a core, its caches and its power.
LEAST_EFFICIENCY = {"tree T1": 0.9, "tree T3": 0.9}
# Limits, which create no family.
NO_CONTESTANTS = ("plain recursion", "plain, each", "a cache line", "a futex")
# Run-times that no registry has which this command's requirements name.
NOT_PACKAGED = ("Taskflow", "HPX", "libfork", "Lace")


class Spread(NamedTuple):
    """The middle of some values, and the ends."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    known = list(values)
    return Spread(median(known), min(known), max(known))


@dataclass
class Row:
    """A benchmark with so many workers: the samples of each run-time, in nanoseconds a task."""

    benchmark: str
    workers: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    tasks: dict[str, float] = field(default_factory=dict)
    goal_ns: float | None = None
    # Of families on several workers, where one worker was measured, too.
    efficiency: float | None = None

    def __post_init__(self) -> None:
        if self.goal_ns is None:
            self.goal_ns = GOALS.get((self.benchmark, self.workers))

    @property
    def title(self) -> str:
        return f"{self.benchmark}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def time(self, runtime: str) -> Spread:
        return spread(self.samples[runtime])

    def ours(self) -> str:
        """The quickest of our variants."""
        mine = [name for name in self.samples if name.startswith(OURS)]
        return min(mine, key=lambda name: self.time(name).median)

    def others(self) -> list[str]:
        return [name for name in self.samples if not name.startswith(OURS)]

    def ratio(self, runtime: str) -> float:
        """Its time by that of families: 2 is half as quick."""
        return self.time(runtime).median / self.time(self.ours()).median

    @property
    def bare_efficiency(self) -> float | None:
        """Of threads that share nothing, where these were measured; those of one thread beside."""
        if not {"plain recursion", "plain, each"} <= self.samples.keys():
            return None
        one, each = self.time("plain recursion").median, self.time("plain, each").median
        return one / (each * self.workers)

    def remark(self) -> str:
        """A sentence for an efficiency that is low; empty elsewhere."""
        least = LEAST_EFFICIENCY.get(self.benchmark)
        if least is None or self.efficiency is None or self.efficiency >= least:
            return ""
        text = f"{self.title}: efficiency {self.efficiency:.2f}"
        bare = self.bare_efficiency
        return text if bare is None else f"{text}; threads that share nothing have {bare:.2f}"

    def verdict(self) -> str:
        """A sentence for a goal that is not reached; empty if all are."""
        others = [name for name in self.others() if name not in NO_CONTESTANTS]
        best = min((self.ratio(name) for name in others), default=None)
        mine = self.time(self.ours()).median
        if self.goal_ns is not None and mine > self.goal_ns:
            return f"{self.title}: {mine:.4g} ns, above {self.goal_ns:.4g}"
        least = LEAST_EFFICIENCY.get(self.benchmark)
        if least is not None and self.efficiency is not None:
            bare = min(1.0, self.bare_efficiency or 1.0)
            if self.efficiency < least * bare:
                return f"{self.title}: efficiency {self.efficiency:.2f}, below {least * bare:.3g}"
        worst = WORST_RATIO_TO_MPI if "MPI" in self.samples else WORST_RATIO
        if best is not None and best < 1 / worst:
            return f"{self.title}: another is {1 / best:.2f} times as quick; {worst} at most"
        if best is not None and best < 1 and self.benchmark in FASTEST_OF_ALL:
            return f"{self.title}: another is {1 / best:.2f} times as quick; it is to be the quickest"
        return ""


@dataclass(frozen=True)
class Contestant:
    """A program that measures one or several run-times."""

    name: str
    command: list[str]
    dashes: str = "--"
    # In processes of so many workers, however many the others have.
    workers: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    # Of its run-times, where they are others than the program says.
    names: dict[str, str] = field(default_factory=dict)

    def run(self, workers: int, quick: bool) -> list[dict]:
        argv = [*self.command, f"{self.dashes}workers", str(workers), f"{self.dashes}rounds", "1"]
        if quick:
            argv.append(f"{self.dashes}quick")
        own = {} if self.workers is None else {"TOMBOLO_SVP_WORKERS": str(self.workers)}
        extra = own | self.environment
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=TIME_LIMIT_S, env=os.environ | extra)
        except subprocess.TimeoutExpired:
            raise UserError(f"{self.name} takes longer than {TIME_LIMIT_S} s") from None
        if done.returncode != 0:
            raise UserError(f"{self.name} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        if "cannot be preloaded" in done.stderr:
            raise UserError(f"{self.name}: {done.stderr.strip()[:400]}")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return [line | {"runtime": self._name(line["runtime"])} for line in lines]

    def _name(self, runtime: str) -> str:
        """Of a run-time that the program names, or of a variant of it: "OpenMP, ..."."""
        first, comma, variant = runtime.partition(",")
        return self.names.get(first, first) + comma + variant


def contestants() -> tuple[list[Contestant], list[str]]:
    """Those that are here, and a sentence for each that is not."""
    if paths.checkout() is None:
        raise UserError("the benchmarks are in the source tree; run this from a checkout")
    found = [Contestant("families", [str(libraries.need_program(PROGRAM))])]
    remote = [str(libraries.need_program(name)) for name in (LAUNCHER, REMOTE_PROGRAM)]
    found.append(Contestant("families in another process", [remote[0], "2", remote[1]], workers=1))
    absent = []
    if library := ctypes.util.find_library("omp"):
        found.append(_llvm_openmp(found[0].command, library))
    else:
        absent.append(f"{LLVM_OPENMP}: no libomp here (Debian: libomp-dev)")
    for name, compiler, package, build, dashes in (
        ("Go", "go", "golang-go", _go, "-"),
        ("Rayon", "cargo", "cargo", _rayon, "--"),
    ):
        if shutil.which(compiler) is None:
            absent.append(f"{name}: no {compiler} here (Debian: {package})")
            continue
        try:
            found.append(Contestant(name, [str(build())], dashes))
        except UserError as mistake:
            absent.append(f"{name}: {mistake}")
    return found, absent


def _llvm_openmp(program: list[str], library: str) -> Contestant:
    """LLVM's library has the calls that gcc makes of OpenMP, too: the same code on another run-time."""
    return Contestant(
        LLVM_OPENMP,
        [*program, "--runtime", "OpenMP"],
        environment={"LD_PRELOAD": library},
        names={"OpenMP": LLVM_OPENMP},
    )


def absent_of(rows: Iterable[Row]) -> list[str]:
    """Those that our own program was built without, and those that have no package."""
    measured = {name for row in rows for name in row.samples}
    lacks = {"oneTBB": "Debian: libtbb-dev, before the build", "OpenMP": "a compiler without it"}
    absent = [f"{name}: not measured ({why})" for name, why in lacks.items() if name not in measured]
    return [*absent, *(f"{name}: not measured (no package)" for name in NOT_PACKAGED)]


def _source(name: str) -> Path:
    return (paths.checkout() or paths.PACKAGE) / "bench/svp" / name


def _built(argv: list, folder: Path, program: Path) -> Path:
    files.folder(program.parent)
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0 or not program.is_file():
        line = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"{paths.shown(folder)} does not compile: {line[:200]}")
    return program


def _go() -> Path:
    program = paths.home() / "build/bench/svp/go"
    return _built(["go", "build", "-o", program, "."], _source("go"), program)


def _rayon() -> Path:
    target = paths.home() / "build/bench/svp/rayon"
    argv = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", target]
    return _built(argv, _source("rayon"), target / "release/families-rayon")


def measure(
    entries: list[Contestant],
    workers: list[int],
    rounds: int,
    quick: bool,
    say: Callable[[str], None],
) -> list[Row]:
    """All in turn, round after round: a change of the host's pace is one for all."""
    rows: dict[tuple[str, int], Row] = {}
    for number in range(1, rounds + 1):
        for count in workers:
            for entry in entries:
                if entry.workers is not None and count != workers[0]:
                    continue
                own = entry.workers or count
                say(f"round {number}, {own} workers: {entry.name}")
                for line in entry.run(own, quick):
                    _keep(rows, line)
    _add_goals(rows)
    return list(rows.values())


def _add_goals(rows: dict[tuple[str, int], Row]) -> None:
    for row in rows.values():
        than, more_ns = GOALS_BEYOND.get(row.benchmark, ("", 0.0))
        if other := rows.get((than, row.workers)):
            row.goal_ns = other.time(OURS).median + more_ns
        one = rows.get((row.benchmark, 1))
        if one and row.workers > 1:
            row.efficiency = _ours_ns(one) / (_ours_ns(row) * row.workers)


def _ours_ns(row: Row) -> float:
    return row.time(row.ours()).median


# So that messages cross a network's protocol, as between hosts: by TCP over the loopback device.
BY_TCP = {
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "UCX_TLS": "tcp,self"},
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"},
}


def ping_pong(key: str, quick: bool) -> list[Row]:
    """A family in a process that only this MPI reaches, beside its own messages of as many bytes: over
    TCP, and over the memory that this MPI's processes share."""
    mpi = mpis.need(key)
    libraries.need_program(f"libtombolo_svp_{mpi.kind}.so")
    program = libraries.need_program(f"tombolo-svp-ping-pong-{mpi.kind}")
    rounds = "10" if quick else "100"
    rows = []
    for network, settings in (("TCP", BY_TCP[mpi.kind]), ("shared memory", {})):
        alone = {"TOMBOLO_SVP_SHARE": "none", "TOMBOLO_SVP_WORKERS": "1"} | settings
        job = launch.job(mpi, 2, [str(program), rounds], None, extra=alone)
        rows += _ping_pong(job, program, network)
    return rows


def _ping_pong(job: launch.Job, program: Path, network: str) -> list[Row]:
    try:
        done = subprocess.run(job.argv, env=job.env, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise UserError(f"{program.name} takes longer than {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise UserError(f"{program.name} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    rows: dict[int, Row] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        row = rows.setdefault(line["bytes"], Row(f"{network}, {line['bytes']} bytes", 1))
        row.samples[line["runtime"]] = line["ns"]
        row.tasks[line["runtime"]] = 1
    return list(rows.values())


def _keep(rows: dict[tuple[str, int], Row], line: dict) -> None:
    key = line["benchmark"], line["workers"]
    row = rows.setdefault(key, Row(*key))
    times = [seconds * 1e9 / line["tasks"] for seconds in line["seconds"]]
    row.samples.setdefault(line["runtime"], []).extend(times)
    row.tasks[line["runtime"]] = line["tasks"]


def results(row: Row) -> list[dict]:
    """A line for each run-time."""
    made = []
    for runtime in row.samples:
        time = row.time(runtime)
        line = {
            "kind": "result",
            "benchmark": row.benchmark,
            "runtime": runtime,
            "workers": row.workers,
            "ns_per_task": time.median,
            "ns_per_task_low": time.low,
            "ns_per_task_high": time.high,
            "seconds": time.median * row.tasks[runtime] / 1e9,
            "ratio_to_families": row.ratio(runtime),
            "samples": len(row.samples[runtime]),
        }
        if row.goal_ns is not None and runtime == row.ours():
            line["goal_ns"] = row.goal_ns
        if row.efficiency is not None and runtime == row.ours():
            line["efficiency"] = row.efficiency
            if row.bare_efficiency is not None:
                line["bare_efficiency"] = row.bare_efficiency
        made.append(line)
    return made
