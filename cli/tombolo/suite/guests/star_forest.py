# SPDX-License-Identifier: Apache-2.0
"""One process of a job with PETSc's star forests: exchanges over one, whose values and times it checks.

    python3 star_forest.py ENTRIES EXCHANGES SECONDS -sf_type window -sf_window_sync fence -sf_window_flavor create

Of each operation there are EXCHANGES exchanges, or as many as begin in SECONDS, if more than a few do.
Each process has ENTRIES roots and twice as many leaves; each root has two leaves, of which some are on its own
process. Each exchange (broadcast, reduction, fetch-and-add) has values of its own, and is met by a barrier before
and behind it: PETSc's forests do not themselves keep an exchange apart from the one before.
Process 0 prints a line of JSON for each operation: wrong values of all processes, and the median time
of the exchanges, each that of the process that took longest.
This program imports nothing of tombolo: the Python of the distribution runs it.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy
import petsc4py

petsc4py.init(sys.argv[3:])  # its first argument stands for the program

from mpi4py import MPI  # noqa: E402 (after petsc4py.init)
from petsc4py import PETSc  # noqa: E402 (after petsc4py.init)

ENTRIES, EXCHANGES, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
UNTIMED = 3  # exchanges in which PETSc makes its datatypes
FEW = 5

Array = numpy.ndarray
Turn = tuple[float, int]  # the seconds, and how many values are wrong

world = MPI.COMM_WORLD
ranks, rank = world.size, world.rank
index = numpy.arange(ENTRIES)


def roots_of(leaves_rank: int) -> tuple[Array, Array]:
    """(rank, index) of the root of each leaf of a process: ENTRIES leaves, then ENTRIES more."""
    ones = (leaves_rank + 1 + index) % ranks
    others = (leaves_rank + index) % ranks
    return numpy.concatenate([ones, others]), numpy.concatenate([index, index])


def root_values(of: int, turn: int) -> Array:
    return of * 1000.0 + index + turn


def leaf_values(of: int, turn: int) -> Array:
    return numpy.concatenate([index + of + turn, 7.0 * index + 3 * of + turn])


def sums(turn: int) -> Array:
    """The roots of this process after a reduction: their values, and those of their leaves."""
    total = root_values(rank, turn)
    for of in range(ranks):
        root_rank, root_index = roots_of(of)
        mine = root_rank == rank
        numpy.add.at(total, root_index[mine], leaf_values(of, turn)[mine])
    return total


def other_leaves(turn: int) -> Array:
    """For each leaf of this process the value of the other leaf of its root."""
    every = numpy.stack([leaf_values(of, turn) for of in range(ranks)])
    root_rank, _ = roots_of(rank)
    of_ones = every[(root_rank[:ENTRIES] - index) % ranks, ENTRIES + index]
    of_others = every[(root_rank[ENTRIES:] - 1 - index) % ranks, index]
    return numpy.concatenate([of_ones, of_others])


def seen_by_leaves(turn: int) -> Array:
    root_rank, root_index = roots_of(rank)
    return numpy.stack([root_values(of, turn) for of in range(ranks)])[root_rank, root_index]


def forest() -> PETSc.SF:
    made = PETSc.SF().create(PETSc.COMM_WORLD)
    made.setFromOptions()
    remote = numpy.stack(roots_of(rank), axis=1).astype(PETSc.IntType)
    made.setGraph(ENTRIES, numpy.arange(2 * ENTRIES, dtype=PETSc.IntType), remote)
    made.setUp()
    return made


def timed(exchange: Callable[[], object]) -> float:
    world.Barrier()
    start = time.perf_counter()
    exchange()
    seconds = time.perf_counter() - start
    world.Barrier()
    return seconds


class Exchanges:
    """The three operations over one forest; each returns its time and how many values are wrong here."""

    def __init__(self) -> None:
        self._forest = forest()
        self._root = numpy.zeros(ENTRIES)
        self._leaf = numpy.zeros(2 * ENTRIES)
        self._fetched = numpy.zeros(2 * ENTRIES)

    def broadcast(self, turn: int) -> Turn:
        self._root[:], self._leaf[:] = root_values(rank, turn), -1
        arguments = (MPI.DOUBLE, self._root, self._leaf, MPI.REPLACE)
        seconds = timed(lambda: (self._forest.bcastBegin(*arguments), self._forest.bcastEnd(*arguments)))
        return seconds, int(numpy.count_nonzero(self._leaf != seen_by_leaves(turn)))

    def reduction(self, turn: int) -> Turn:
        self._root[:], self._leaf[:] = root_values(rank, turn), leaf_values(rank, turn)
        arguments = (MPI.DOUBLE, self._leaf, self._root, MPI.SUM)
        seconds = timed(lambda: (self._forest.reduceBegin(*arguments), self._forest.reduceEnd(*arguments)))
        return seconds, int(numpy.count_nonzero(self._root != sums(turn)))

    def fetch_and_add(self, turn: int) -> Turn:
        self._root[:], self._leaf[:] = root_values(rank, turn), leaf_values(rank, turn)
        self._fetched[:] = -1
        arguments = (MPI.DOUBLE, self._root, self._leaf, self._fetched, MPI.SUM)
        seconds = timed(
            lambda: (
                self._forest.fetchAndOpBegin(*arguments),
                self._forest.fetchAndOpEnd(*arguments),
            )
        )
        before = seen_by_leaves(turn)
        fine = (self._fetched == before) | (self._fetched == before + other_leaves(turn))
        return seconds, int(numpy.count_nonzero(~fine) + numpy.count_nonzero(self._root != sums(turn)))


def repeated(exchange: Callable[[int], Turn]) -> list[Turn]:
    """Time and wrong values of each turn; process 0 decides for all whether there is another."""
    told: list[Turn] = []
    start = time.perf_counter()
    while len(told) < EXCHANGES + UNTIMED:
        late = time.perf_counter() - start > SECONDS and len(told) >= FEW + UNTIMED
        if world.bcast(late):
            break
        told.append(exchange(len(told)))
    return told


def main() -> None:
    exchanges = Exchanges()
    for name in ("broadcast", "reduction", "fetch_and_add"):
        told = repeated(getattr(exchanges, name))
        slowest = numpy.zeros(len(told))
        world.Allreduce(numpy.array([seconds for seconds, _ in told]), slowest, MPI.MAX)
        wrong = world.allreduce(sum(count for _, count in told))
        if rank == 0:
            median = statistics.median(slowest[UNTIMED:]) * 1e6
            timed_ones = len(told) - UNTIMED
            line = {"operation": name, "wrong": wrong, "median_us": round(median, 2), "of": timed_ones}
            print(json.dumps(line), flush=True)


main()
