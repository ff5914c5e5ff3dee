# SPDX-License-Identifier: Apache-2.0
"""Runs bench/starvation.c for each lock scheme of ours and for stock MPIs, one after the other."""

import json
import subprocess
from dataclasses import dataclass, field

from tombolo import compile, libraries, measure, processes
from tombolo.launch import Choice, job
from tombolo.mpis import Mpi

START_SECONDS = 30
PROGRAM = "tombolo-locks"


@dataclass(frozen=True)
class Family:
    """A lock family, as the library tells it: its name and its properties."""

    name: str
    order: str  # in which it admits: none, writers-first or arrival
    reader_bias: bool  # it may let readers announce themselves between writes

    @property
    def label(self) -> str:
        return self.name.replace("-", " ")


def families() -> list[Family]:
    """Those that a window may use, the default first."""
    told = subprocess.run([libraries.need_program(PROGRAM)], capture_output=True, text=True, check=True)
    return [Family(**json.loads(line)) for line in told.stdout.splitlines()]


def schemes(family: Family) -> list[tuple[str, str, bool, bool]]:
    """The runs of it: the label, its name, whether it backs off between attempts, and whether
    readers announce themselves, which the paper's best effort does not."""
    found = [(family.label, family.name, True, False)]
    if family.order == "none":  # then cores poll
        found.insert(0, (f"{family.label} without back-off", family.name, False, False))
    if family.reader_bias:
        found.append((f"{family.label} with reader bias", family.name, True, True))
    return found


@dataclass
class Contestant:
    """A lock scheme of ours in front of an MPI, or a stock MPI (`locks` None), and its results."""

    mpi: Mpi
    label: str
    locks: str | None = None
    backoff: bool = True
    reader_bias: bool = True
    rows: dict[str, dict] = field(default_factory=dict)  # by the name of the row
    failure: str | None = None

    def environment(self) -> dict[str, str]:
        if self.locks is None:
            return {}
        return {
            "TOMBOLO_PASSIVE_SYNC": self.locks,
            "TOMBOLO_BACKOFF": "on" if self.backoff else "off",
            "TOMBOLO_READER_BIAS": "on" if self.reader_bias else "off",
        }


def contestants(host: Mpi, stock: list[Mpi]) -> list[Contestant]:
    ours = [
        Contestant(host, f"Tombolo, {label}", locks, backoff, reader_bias)
        for family in families()
        for label, locks, backoff, reader_bias in schemes(family)
    ]
    return ours + [Contestant(mpi, mpi.label) for mpi in stock]


def run(entry: Contestant, ranks: int, machine: str, options: list[str], budget: float) -> None:
    """Fills in `rows`, or `failure` where the run broke."""
    program = compile.benchmark(entry.mpi, "starvation")
    # With --touch the locks are real where an MPI defers them to the first operation.
    command = [str(program), "--touch", "--budget-s", str(budget), *options]
    choice = Choice(machine) if entry.locks else None
    made = job(entry.mpi, ranks, command, choice, extra=entry.environment())
    outcome = processes.run(made, START_SECONDS + 8 * budget)
    entry.rows = {record["row"]: record for record in measure.parse(outcome.stdout)}
    if outcome.status is None:
        entry.failure = "hangs"
    elif outcome.status != 0:
        entry.failure = f"ends with {outcome.status}: {measure.complaint(outcome)}"
