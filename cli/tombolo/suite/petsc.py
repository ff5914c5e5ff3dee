# SPDX-License-Identifier: Apache-2.0
"""Star forests of the distribution's PETSc over windows: right or wrong, and how long an exchange takes.

PETSc makes the windows in one of four ways (flavors) and synchronizes in one of three; its own options choose.
It comes with Python bindings, for the distribution's Open MPI, and is installed for this alone.
"""

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tombolo import hints, processes, stats
from tombolo.errors import UserError
from tombolo.launch import job
from tombolo.mpis import Mpi
from tombolo.suite import runner
from tombolo.suite.runner import Setting

MPI = "openmpi-apt"  # that the distribution's PETSc is linked to
MACHINES = ("coherent", "flushed", "stale")
FLAVORS = ("create", "dynamic", "allocate", "shared")
SYNCS = ("fence", "active", "lock")
OPERATIONS = ("broadcast", "reduction", "fetch_and_add")
ENTRIES = 1024
EXCHANGES = 100
EXCHANGES_ON_STALE = 20
SECONDS = 3  # for one operation of a run, whatever its exchanges take
# Processes that store into parts of shared memory with a line in common lose bytes without
# coherence. PETSc has windows of 4 bytes for each process, and asks for the place of each part.
APART = {"TOMBOLO_SHARED_NONCONTIG": "on"}
PROGRAM = Path(__file__).with_name("guests") / "star_forest.py"
INSTALLED = Path("/usr/lib/petscdir")
NOT_OFFERED = re.compile(r"No support for flavor")  # PETSc was built without such windows


@dataclass(frozen=True)
class Forest:
    """A kind of star forest."""

    flavor: str
    sync: str

    @property
    def options(self) -> list[str]:
        chosen = {"type": "window", "window_sync": self.sync, "window_flavor": self.flavor}
        return [word for name, value in chosen.items() for word in (f"-sf_{name}", value)]


@dataclass(frozen=True)
class Petsc:
    """The distribution's PETSc, and the Python that has its bindings."""

    python: Path
    folder: Path


@dataclass
class Cell:
    """One operation of one kind of forest under one setting, over all its turns."""

    words: list[str] = field(default_factory=list)  # "right" or a kind of failure
    times_us: list[float] = field(default_factory=list)

    @property
    def word(self) -> str:
        return next((word for word in self.words if word != "right"), "right")

    @property
    def right(self) -> bool:
        return bool(self.words) and self.word == "right"

    @property
    def time_us(self) -> float | None:
        return median(self.times_us) if self.times_us and self.right else None


Key = tuple[Forest, str, int, Setting]  # the str: an operation; the int: processes


class Campaign:
    """The runs of all kinds of forests."""

    def __init__(self, petsc: Petsc, mpi: Mpi, limit: float, keep: Callable[[dict], None]) -> None:
        self.cells: dict[Key, Cell] = defaultdict(Cell)
        self.not_offered: list[Forest] = []
        self.windows = stats.Stats()
        self.complaints: dict[Key, str] = {}
        self._petsc, self._mpi, self._limit, self._keep = petsc, mpi, limit, keep

    def measure(self, forest: Forest, ranks: int, settings: list[Setting], turns: int) -> bool:
        """All settings in turn; False where this PETSc has no such forest."""
        for turn in range(turns):
            for setting in settings:
                if turn and (setting.machine == "stale" or self._failed(forest, ranks, setting)):
                    continue  # time on `stale` says nothing, and failures are slow
                outcome = self._run(forest, ranks, setting)
                if NOT_OFFERED.search(outcome.stderr):
                    self.not_offered.append(forest)
                    return False
                self._store(forest, ranks, setting, outcome)
        return True

    def _failed(self, forest: Forest, ranks: int, setting: Setting) -> bool:
        return not all(self.cells[forest, name, ranks, setting].right for name in OPERATIONS)

    def _run(self, forest: Forest, ranks: int, setting: Setting) -> processes.Outcome:
        count = EXCHANGES_ON_STALE if setting.machine == "stale" else EXCHANGES
        numbers = [str(number) for number in (ENTRIES, count, SECONDS)]
        command = [str(self._petsc.python), str(PROGRAM), *numbers, *forest.options]
        extra = {"PETSC_DIR": str(self._petsc.folder)}
        if forest.flavor == "shared" and setting.machine not in ("stock", "coherent"):
            extra |= APART
        return processes.run(job(self._mpi, ranks, command, setting.choice, yields=True, extra=extra), self._limit)

    def _store(self, forest: Forest, ranks: int, setting: Setting, outcome: processes.Outcome) -> None:
        told = told_by(outcome.stdout)
        self.windows = add(self.windows, stats.total(outcome.stderr))
        for name in OPERATIONS:
            key = (forest, name, ranks, setting)
            word = judged(told.get(name), outcome)
            self.cells[key].words.append(word)
            if word == "right":
                self.cells[key].times_us.append(told[name]["median_us"])
            else:
                self.complaints.setdefault(key, runner.complaint(outcome.stderr) or word)
            self._keep(
                {"kind": "forest", "flavor": forest.flavor, "sync": forest.sync, "ranks": ranks,
                 "operation": name, "machine": setting.machine, "seed": setting.seed,
                 "result": word, "told": told.get(name)}
            )  # fmt: skip


def told_by(stdout: str) -> dict[str, dict]:
    """The lines of the program, by operation."""
    lines = [json.loads(line) for line in stdout.splitlines() if line.startswith('{"operation"')]
    return {line["operation"]: line for line in lines}


def judged(line: dict | None, outcome: processes.Outcome) -> str:
    """A failure behind the last line is that of the last operation's windows, too."""
    if line is not None and line["wrong"]:
        return f"{line['wrong']} wrong"
    if line is not None and (outcome.status == 0 or line["operation"] != OPERATIONS[-1]):
        return "right"
    return "time limit" if outcome.status is None else f"exit {outcome.status}"


def add(left: stats.Stats, right: stats.Stats) -> stats.Stats:
    reasons = tuple(dict.fromkeys(left.reasons + right.reasons))
    return stats.Stats(left.served + right.served, left.forwarded + right.forwarded, reasons)


# --- Finding --------------------------------------------------------------------------------------


def need() -> Petsc:
    if found := find():
        return found
    advice = hints.here(hints.PETSC, hints.PETSC_OF_PACKAGE)
    raise UserError(f"PETSc with its Python bindings is not installed here; to have it: {advice}")


def find() -> Petsc | None:
    """The newest of the distribution's, or the one that PETSC_DIR names."""
    python = shutil.which("python3", path="/usr/bin")
    named = os.environ.get("PETSC_DIR")
    folders = [Path(named)] if named else sorted(INSTALLED.glob("petsc*/*-real"), reverse=True)
    for folder in folders:
        if python and imports(python, folder):
            return Petsc(Path(python), folder)
    return None


def imports(python: str, folder: Path) -> bool:
    asked = [python, "-c", "import petsc4py, mpi4py, numpy"]
    told = subprocess.run(asked, env=os.environ | {"PETSC_DIR": str(folder)}, capture_output=True)
    return told.returncode == 0
