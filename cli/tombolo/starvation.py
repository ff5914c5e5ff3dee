# SPDX-License-Identifier: Apache-2.0
"""Runs bench/starvation.c for each lock scheme of ours and for stock MPIs, one after the other."""

from dataclasses import dataclass, field

from tombolo import compile, measure, processes
from tombolo.launch import Choice, job
from tombolo.mpis import Mpi

START_SECONDS = 30
# Our schemes: the label, the library's name for it, whether it backs off between attempts, and
# whether readers announce themselves between writes, which the paper's best effort does not.
SCHEMES = (
    ("best effort without back-off", "best-effort", False, False),
    ("best effort", "best-effort", True, False),
    ("best effort with reader bias", "best-effort", True, True),
    ("writer preference", "writer-preference", True, False),
    ("fifo", "fifo", True, False),
)


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
    ours = [Contestant(host, f"Tombolo, {label}", *scheme) for label, *scheme in SCHEMES]
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
