# SPDX-License-Identifier: Apache-2.0
"""Runs the one-sided micro-benchmarks under several contestants in turn, A B A B."""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

from tombolo import compile, host, paths, processes
from tombolo.launch import Choice, job
from tombolo.mpis import Mpi

START_SECONDS = 30
SECONDS_PER_ROW = 15


@dataclass(frozen=True)
class Target:
    """A row that the table shows, and our aim there."""

    name: str
    ranks: int
    title: str
    flavor: str = "allocate"
    machine: str = "coherent"
    target: float | None = None
    limit: str = ""
    program: str = "one_sided"  # of bench/
    loaded: bool = False  # a row of a host that does other work, too
    times_memcpy: float | None = None  # our aim, where the program measures a memcpy beside

    @property
    def id(self) -> tuple[str, str]:
        return self.name, self.flavor


class Entry(Protocol):
    """A contestant, of this run or of kept records."""

    @property
    def label(self) -> str: ...
    @property
    def stock(self) -> bool: ...


@dataclass(frozen=True)
class Contestant:
    """A stock MPI, tuned to yield or not, or Tombolo on a machine in front of one."""

    mpi: Mpi
    machine: str | None = None  # None: stock
    yields: bool | None = None

    @property
    def stock(self) -> bool:
        return self.machine is None

    @property
    def label(self) -> str:
        if self.machine:
            return f"Tombolo {self.machine} ({self.mpi.key})"
        return self.mpi.label + (" tuned" if self.yields else "")


@dataclass(frozen=True)
class Sample:
    """One row of one run."""

    median: float
    q1: float
    q3: float
    samples: int
    mean: float
    per_s: float | None = None  # operations in a second of rank 0
    by_memcpy: float | None = None  # the time by that of a memcpy beside


@dataclass
class Cell:
    """A row of one contestant over all rounds."""

    rounds: list[Sample]

    @property
    def median(self) -> float:
        return median(sample.median for sample in self.rounds)

    @property
    def low(self) -> float:
        return min(sample.q1 for sample in self.rounds)

    @property
    def high(self) -> float:
        return max(sample.q3 for sample in self.rounds)

    @property
    def mean(self) -> float:
        """Of a typical round."""
        return median(sample.mean for sample in self.rounds)

    @property
    def per_s(self) -> float | None:
        return median_of([sample.per_s for sample in self.rounds])

    @property
    def by_memcpy(self) -> float | None:
        return median_of([sample.by_memcpy for sample in self.rounds])

    @property
    def two_kinds(self) -> bool:
        """Whether so many samples take so much longer that the median misleads."""
        return self.mean > 10 * self.median


def median_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def targets(path: Path | None = None) -> list[Target]:
    text = (path or paths.DATA / "one_sided_targets.toml").read_text()
    return [Target(**row) for row in tomllib.loads(text)["row"]]


def pick(
    rows: list[Target], ranks: int, machines: list[str], pattern: str | None, loaded: bool = False
) -> list[Target]:
    """The rows for that many ranks, one of the machines, a name that matches, and such a host."""
    return [
        row
        for row in rows
        if row.ranks == ranks
        and row.loaded == loaded
        and row.machine in machines
        and (pattern is None or re.search(pattern, row.name))
    ]


def contestants(found: list[Mpi], under: list[Mpi], machines: list[str], ranks: int) -> list[Contestant]:
    """Every stock MPI, each followed by ours in front of it where asked."""
    entries = []
    for mpi in found:
        entries.append(Contestant(mpi, yields=False))
        if mpi.key == "mpich" and ranks > host.cores():
            entries.append(Contestant(mpi, yields=True))
        if mpi in under:
            entries += [Contestant(mpi, machine) for machine in machines]
    return entries


class Campaign:
    """The measurements of all contestants; remembers the rows that each cannot run."""

    def __init__(
        self,
        ranks: int,
        options: list[str],
        keep: Callable[[dict], None],
        say: Callable[[str], None],
        programs: Mapping[str, str] | None = None,  # by row, of those that are not in one_sided
    ) -> None:
        self.cells: dict[tuple[Entry, tuple[str, str]], Cell] = defaultdict(lambda: Cell([]))
        self.broken: set[tuple[Entry, tuple[str, str]]] = set()
        self._ranks, self._options = ranks, options
        self._keep, self._say = keep, say
        self._programs = programs or {}

    def round(self, number: int, contestant: Contestant, rows: list[tuple[str, str]]) -> None:
        """One run for each program and flavour; a row that crashes or hangs is named and left out
        from then on."""
        runs: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, flavor in dict.fromkeys(rows):
            if (contestant, (name, flavor)) not in self.broken:
                runs[self._programs.get(name, "one_sided"), flavor].append(name)
        for (program, flavor), names in runs.items():
            while names:
                names = self._run(number, contestant, program, flavor, names)

    def _run(self, number: int, contestant: Contestant, name: str, flavor: str, names: list[str]) -> list[str]:
        """Returns the rows that are still to do because one before them broke the run."""
        program = compile.benchmark(contestant.mpi, name)
        choice = Choice(contestant.machine) if contestant.machine else None
        command = [str(program), "--json", "--flavor", flavor, "--rows", f"^({'|'.join(names)})$"]
        made = job(
            contestant.mpi,
            self._ranks,
            command + self._options,
            choice,
            yields=contestant.yields if contestant.stock else None,
        )
        outcome = processes.run(made, START_SECONDS + SECONDS_PER_ROW * len(names))
        done = []
        for record in parse(outcome.stdout):
            done.append(record["row"])
            self.store(number, contestant, record)
        if outcome.status == 0:
            return []
        left = [row for row in in_order(names, name) if row not in done]
        how = "hangs" if outcome.status is None else f"ends with {outcome.status}"
        culprit = left[0] if left else "the end of the run"
        self._say(f"{contestant.label}: {how} in {culprit} ({flavor}): {complaint(outcome)}")
        self._keep(
            {"kind": "broken", "contestant": contestant.label, "row": culprit, "flavor": flavor,
             "how": how, "stderr": outcome.stderr[-2000:]}
        )  # fmt: skip
        if left:
            self.broken.add((contestant, (left[0], flavor)))
        return left[1:]

    def store(self, number: int, contestant: Entry, record: dict) -> None:
        """One row of one run."""
        key = (contestant, (record["row"], record["flavor"]))
        sample = Sample(
            record["median"],
            record["q1"],
            record["q3"],
            record["samples"],
            record["mean"],
            record.get("per_s") or None,
            record.get("by_memcpy"),
        )
        self.cells[key].rounds.append(sample)
        self._keep({"kind": "sample", "contestant": contestant.label, "round": number, **record})


def in_order(names: list[str], program: str) -> list[str]:
    """The rows in the order in which the program runs them: that of its table."""
    text = ((paths.checkout() or paths.PACKAGE) / "bench" / f"{program}.c").read_text()
    return sorted(names, key=lambda name: text.find(f'"{name}"'))


def parse(stdout: str) -> list[dict]:
    """The JSON lines in the output of a run."""
    records = []
    for line in stdout.splitlines():
        if line.startswith("{"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            records.append({"flavor": "allocate", **record})
    return records


def complaint(outcome: processes.Outcome) -> str:
    """The line of stderr that says most: the first that is not decoration."""
    for line in outcome.stderr.splitlines():
        if re.search(r"[a-z]{4}", line):
            return line.strip()[:160]
    return "no message"
