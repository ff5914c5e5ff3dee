# SPDX-License-Identifier: Apache-2.0
"""The kernels of bench/dsm: on virtual shared memory and with Pthreads, measured in turn.

On virtual shared memory they call tombolo/dsm.h, or are programs of Pthreads: the same source as the base,
unchanged or compiled by tombolo-cc.
"""

import functools
import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tombolo import compilers, dsm, dsm_pthreads, files, libraries, paths
from tombolo.errors import UserError

FLAGS = ["-O3", "-march=native", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread"]
TIME_LIMIT_S = 300
PTHREADS = "pthreads"
UNCHANGED = "unchanged"  # a program of Pthreads that cc has compiled
CLANG = "clang"
AGAIN = "again"  # Pthreads a second time in each round: by how much two runs of one program differ
WITHOUT = "TOMBOLO_DSM_WITHOUT"
GOAL_OF_MAP = 0.98  # the ratio, of every kernel
MEMORY = "1200MiB"
# The heap of `map` has size classes: a block may take as much again.
MAPPED_MEMORY = "2400MiB"


@dataclass(frozen=True)
class Kernel:
    """A row of data/dsm_kernels.toml, whose head explains the fields."""

    program: str
    variant: str
    goal: float | None = None
    goal_us: float | None = None
    threads: int | None = None  # None: as many as the caller wants
    cache: str = "256MiB"
    whole_cache: str | None = None
    cost: float = 1
    quick: tuple[str, ...] = ()
    quick_cache: str | None = None
    pthreads_only: bool = False
    samhita: str = ""
    argodsm: str = ""

    @property
    def title(self) -> str:
        return f"{self.program}, {self.variant}"


@dataclass(frozen=True)
class Contestant:
    """One way to run the kernels: Pthreads, or a transport on a machine."""

    transport: str
    machine: str = "coherent"
    whole: bool = False  # in a cache that holds all
    # A program of Pthreads: UNCHANGED, or the stores that tombolo-cc has recorded; of PTHREADS
    # itself, its compiler if that is another one than cc, or AGAIN.
    made: str = ""
    without: tuple[str, ...] = ()  # tunings of the protocols that are switched off

    @property
    def is_base(self) -> bool:
        return self.transport == PTHREADS

    @property
    def label(self) -> str:
        plain = self.transport != "window" or self.machine == "coherent"
        name = self.transport if plain else f"{self.transport} on {self.machine}"
        if self.is_base:
            return f"{name}, {self.made}" if self.made else name
        name = f"{self.made}, {name}" if self.made else name
        name = f"{name}, without {', '.join(self.without)}" if self.without else name
        return f"{name}, all cached" if self.whole else name


# Measured with Pthreads besides, by the rows that move memory alone: their own copy is to new
# memory, as that of a page cache.
COPY_THERE = Contestant("copy to memory that is there already")


class Goal(NamedTuple):
    """The least ratio, or the longest time in microseconds."""

    value: float
    us: bool = False

    def __str__(self) -> str:
        return f"{self.value:g} us" if self.us else f"{self.value:g}"


class Spread(NamedTuple):
    """The middle of some values, and the ends."""

    median: float
    low: float
    high: float


@dataclass
class Measured:
    """The seconds of a kernel, by contestant and round; None where it failed."""

    kernel: Kernel
    rounds: list[dict[Contestant, float | None]] = field(default_factory=list)

    def seconds(self, contestant: Contestant) -> Spread | None:
        return spread(v for each in self.rounds if (v := each.get(contestant)) is not None)

    def base(self, contestant: Contestant) -> Contestant:
        """The one that it is compared with: Pthreads by the same compiler, or itself where its cache holds all."""
        if self.kernel.whole_cache and contestant.transport == "window" and not contestant.whole:
            return replace(contestant, whole=True)
        return Contestant(PTHREADS, made=CLANG if contestant.made in compilers.VARIANTS else "")

    def ratio(self, contestant: Contestant, base: Contestant | None = None) -> Spread | None:
        """How quick it is beside its base in the same round: 1 is as quick."""
        base = base or self.base(contestant)
        return spread(
            theirs / ours
            for each in self.rounds
            if (theirs := each.get(base)) is not None and (ours := each.get(contestant)) is not None
        )

    def met(self, contestant: Contestant) -> bool | None:
        """Whether its goal is reached; None where it has none, or was not measured."""
        goal, seconds = goal_of(self.kernel, contestant), self.seconds(contestant)
        if goal is None or seconds is None:
            return None
        if goal.us:
            return seconds.median * 1e6 <= goal.value
        ratio = self.ratio(contestant)
        return None if ratio is None else ratio.median >= goal.value


def spread(values: Iterator[float]) -> Spread | None:
    known = list(values)
    return Spread(median(known), min(known), max(known)) if known else None


def goal_of(kernel: Kernel, contestant: Contestant) -> Goal | None:
    if contestant.is_base or contestant.whole or contestant.without or kernel.pthreads_only:
        return None
    if contestant.transport == "map":
        return Goal(GOAL_OF_MAP)
    if kernel.goal_us is not None:
        return Goal(kernel.goal_us, us=True)
    return None if kernel.goal is None else Goal(kernel.goal)


@functools.cache
def kernels() -> tuple[Kernel, ...]:
    text = (paths.DATA / "dsm_kernels.toml").read_text()
    return tuple(_kernel(row) for row in tomllib.loads(text)["kernel"])


def _kernel(row: dict) -> Kernel:
    samhita = row.pop("samhita", None)
    quoted = f"{samhita['value']} (003 section {samhita['section']})" if samhita else ""
    return Kernel(**row | {"quick": tuple(row.get("quick", ())), "samhita": quoted})


@functools.cache
def compiled(kind: str) -> Path:
    """The program of all kernels, made once in a run of the command; all have the same flags. `kind`: PTHREADS or
    CLANG for a base, `made` of another contestant, or "shared" for calls of tombolo/dsm.h."""
    root = paths.checkout()
    if root is None:
        raise UserError("the kernels are in the source tree; run this from a checkout")
    source = root / "bench/dsm/kernels.c"
    target = paths.home() / "build/bench/dsm" / kind
    files.folder(target.parent)
    copies = ["-DPTHREADS", "-DCOPIES"]
    options = {PTHREADS: copies, CLANG: copies, "shared": []}.get(kind, ["-DPTHREADS"])
    libraries_of_it = dsm.flags() if kind == "shared" else []
    words = [*FLAGS, f"-I{root}", *options, str(source), "-o", str(target), *libraries_of_it, "-lm"]
    if kind in compilers.VARIANTS:
        argv = compilers.command_line("clang", [f"--tombolo-stores={kind}", *words])
    else:
        clang = compilers.clang_of(compilers.need_plugin(), "clang") if kind == CLANG else None
        argv = [str(clang or "cc"), *words]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"{paths.shown(source)} does not compile:\n{done.stderr}")
    return target


def run(kernel: Kernel, contestant: Contestant, threads: int, quick: bool) -> dict:
    """The line of one run; a UserError if it fails."""
    threads = kernel.threads or threads
    arguments = [kernel.program, kernel.variant, *(kernel.quick if quick else ())]
    cache = kernel.quick_cache if quick and kernel.quick_cache else kernel.cache
    if contestant.whole:
        cache = kernel.whole_cache or MEMORY
    made = "" if contestant.made == AGAIN else contestant.made
    argv = [str(compiled(made or PTHREADS)), *arguments]
    env = os.environ | {"THREADS": str(threads)}
    if contestant.made and not contestant.is_base:
        env |= _world(contestant, threads, cache)
    elif not contestant.is_base:
        argv = dsm.command(threads, [str(compiled("shared")), *arguments])
        env = dsm.environment(
            dsm.Choice(transport=contestant.transport, machine=contestant.machine, memory=MEMORY, cache=cache)
        )
    if contestant.without:
        env |= {WITHOUT: ",".join(contestant.without)}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise UserError(f"it takes longer than {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise UserError(f"it ended with status {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def _world(contestant: Contestant, threads: int, cache: str) -> dict[str, str]:
    """Of a program of Pthreads whose threads are processes."""
    window = contestant.transport == "window"
    return dsm_pthreads.environment(
        max(threads, 2),
        memory=MEMORY if window else MAPPED_MEMORY,
        transport=contestant.transport,
        machine=contestant.machine if window else None,
        cache=cache if window else None,
    )


def contestants(machines: list[str]) -> list[Contestant]:
    """Pthreads, the same pages for all, and caches of their own on each machine."""
    libraries.need_program(dsm.LAUNCHER)
    return [Contestant(PTHREADS), *_by_transport(machines)]


def programs(machines: list[str]) -> list[Contestant]:
    """Pthreads, and its programs by each transport: unchanged, and compiled by tombolo-cc in each way."""
    libraries.refresh("compiler")
    dsm_pthreads.library()
    compilers.need_plugin()
    made = (UNCHANGED, *compilers.VARIANTS)
    ours = [replace(each, made=name) for each in _by_transport(machines) for name in made]
    return [Contestant(PTHREADS), Contestant(PTHREADS, made=CLANG), *ours]


def _by_transport(machines: list[str]) -> list[Contestant]:
    return [Contestant("map"), *(Contestant("window", machine) for machine in machines)]


def and_without(entries: list[Contestant], tunings: list[str]) -> list[Contestant]:
    """Each that caches pages a second time, with these tunings switched off."""
    windows = [each for each in entries if each.transport == "window"]
    return [*entries, *(replace(each, without=tuple(tunings)) for each in windows)]


def entries_of(kernel: Kernel, entries: list[Contestant]) -> list[Contestant]:
    """The contestants of one row, each before those that are compared with it."""
    if not kernel.whole_cache:
        return entries
    windows = [each for each in entries if each.transport == "window"]
    wholes = [replace(each, whole=True) for each in windows]
    return [each for each in entries if each not in windows] + wholes + windows
