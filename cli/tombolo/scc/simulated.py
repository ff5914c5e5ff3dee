# SPDX-License-Identifier: Apache-2.0
"""One simulation of a point on the chip, with its parts and its cores, as the native program tells it."""

from collections.abc import Callable
from dataclasses import dataclass

DIRECTIONS = ("east", "west", "south", "north")  # of links, by number


@dataclass(frozen=True)
class Part:
    part: str  # one of KINDS
    x: int
    y: int
    number: int  # of a bank, of a register's core on its tile, or a link's direction
    served: int
    utilisation: float
    mean_wait_ns: float

    @property
    def name(self) -> str:
        names: dict[str, Callable[[int], str]] = {"bank": str, "register": str, "link": DIRECTIONS.__getitem__}
        number = f" {names[self.part](self.number)}" if self.part in names else ""
        return f"{self.part}{number} at ({self.x}, {self.y})"


@dataclass(frozen=True)
class Core:
    core: int
    x: int
    y: int
    loads_that_left: int
    stores_that_left: int
    tests: int
    tests_failed: int
    reading: float  # shares of the run: waiting for loads, for the write before, for registers
    writing: float
    testing: float

    @property
    def working(self) -> float:
        """The rest: work in the first level, in the second, and pauses."""
        return 1 - self.reading - self.writing - self.testing


@dataclass(frozen=True)
class Run:
    """One simulation of a point."""

    experiment: str
    point: str
    chip: str
    columns: int
    rows: int
    end_us: float
    parts: tuple[Part, ...]
    cores: tuple[Core, ...]

    def of(self, kind: str) -> list[Part]:
        """The parts of a kind, the busiest first."""
        return sorted((p for p in self.parts if p.part == kind), key=lambda p: -p.utilisation)
