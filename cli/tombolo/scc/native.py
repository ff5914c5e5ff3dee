# SPDX-License-Identifier: Apache-2.0
"""The native program `tombolo-scc`: its experiments, and how its lines are read."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import TypeVar

from tombolo import libraries
from tombolo.errors import UserError
from tombolo.scc import chips

NAME = "tombolo-scc"
CALLERS_MISTAKE = 2
LINE_FIELDS = ("experiment", "series", "x", "value", "unit")


@dataclass(frozen=True)
class Offer:
    """An experiment that the program can run."""

    experiment: str
    title: str
    points: int
    quick_points: int


@dataclass(frozen=True)
class Point:
    """A piece of an experiment that runs by itself, in a process of its own."""

    experiment: str
    name: str
    cost: float  # expected seconds, relative to the other points
    memory: int  # bytes


@dataclass(frozen=True)
class Setting:
    """The setting under which points are measured: results of different settings are kept apart."""

    quick: bool = False
    seed: int = 1
    chip: str = chips.DEFAULT  # by name, or a file of parameters

    def arguments(self) -> list[str]:
        """Of `plan`, and with the seed of `run`."""
        chip = ["--chip", self.chip] if self.chip != chips.DEFAULT else []
        return (["--quick"] if self.quick else []) + chip

    @property
    def mode(self) -> str:
        """The set of points."""
        return "quick" if self.quick else "full"

    @property
    def label(self) -> str:
        """For the names of files: `full-seed1-scc.1a2b3c4d`, the end from the chips' parameters."""
        return f"{self.name}.{chips.digest_with_others(self.chip)}"

    @property
    def name(self) -> str:
        """The label without that end, for files that are made anew each time."""
        return f"{self.mode}-seed{self.seed}-{chips.load(self.chip).name}"


def digest(path: Path) -> str:
    """The start of the SHA-256 of a file's content."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as mistake:
        raise UserError(f"{path}: {mistake.strerror}") from None


def offers(program: Path) -> dict[str, Offer]:
    """The program's experiments, by name, in its order."""
    told = [_read(Offer, line, "list") for line in ask(program, "list")]
    return {offer.experiment: offer for offer in told}


def plan(program: Path, experiment: str, setting: Setting) -> list[Point]:
    """The points of one experiment."""
    lines = ask(program, "plan", experiment, *setting.arguments())
    return [_read(_point, line, "plan") for line in lines]


def command(program: Path, point: Point, setting: Setting, statistics: bool = False) -> list[str]:
    """The command line that measures one point; `statistics`: and tells how busy the parts were."""
    return [
        str(program), "run", point.experiment, "--point", point.name,
        *setting.arguments(), "--seed", str(setting.seed),
        *(["--statistics"] if statistics else []),
    ]  # fmt: skip


def parse(line: str) -> dict | None:
    """The JSON object in a line, or None."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def complete(record: dict) -> bool:
    """Whether a line has all fields of a measured value."""
    number = isinstance(record.get("value"), int | float)
    return number and all(field in record for field in LINE_FIELDS)


def environment() -> dict[str, str]:
    """Of the program: it shall find the chips that this command finds."""
    folder = chips.folder()
    return {**os.environ, "TOMBOLO_CHIPS": str(folder)} if folder.is_dir() else dict(os.environ)


def locate() -> Path:
    """The program, built if a checkout has none, or one of older sources: its points are those of a build."""
    libraries.refresh("scc")
    return libraries.need_program(NAME)


def _point(experiment: str, point: str, cost: float, memory_bytes: int) -> Point:
    return Point(experiment, point, float(cost), int(memory_bytes))


Made = TypeVar("Made")


def _read(make: Callable[..., Made], line: str, verb: str) -> Made:
    record = parse(line)
    try:
        if record is not None:
            return make(**record)
    except (TypeError, ValueError):
        pass
    raise UserError(f"`{NAME} {verb}` printed a line that this command cannot read: {line[:120]}")


def ask(program: Path, *arguments: str) -> list[str]:
    """The lines that a call prints; a UserError for one that fails."""
    told = _call(program, *arguments)
    if told.returncode == 0:
        return [line for line in told.stdout.splitlines() if line.strip()]
    said = told.stderr.strip().removeprefix(f"{NAME}: ")
    if told.returncode == CALLERS_MISTAKE and said:
        raise UserError(said)
    raise UserError(f"`{NAME} {' '.join(arguments)}` {ending(told.returncode)}: {said or 'no message'}")


def _call(program: Path, *arguments: str) -> subprocess.CompletedProcess:
    argv = [str(program), *arguments]
    try:
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", env=environment())
    except OSError as mistake:
        raise UserError(f"{program} does not start: {mistake.strerror}") from None


def ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
