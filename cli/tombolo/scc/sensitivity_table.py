# SPDX-License-Identifier: Apache-2.0
"""The verdicts that flip with each variant of the chip, as a file of the source tree: of one set of
points, and of a chip whose digest it has."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tombolo import files, paths, records
from tombolo.errors import UserError
from tombolo.scc import chips


@dataclass(frozen=True)
class Flip:
    """A verdict that is another: of a claim, or of a number of a paper."""

    name: str  # "experiment: claim", or "experiment: series at x"
    word: str
    found: str
    varied_word: str
    varied_found: str


@dataclass
class Outcome:
    """Of one variant."""

    variant: str
    change: str
    points: int  # that were measured anew
    judged: int  # verdicts that can flip: of measured points, by samples enough for them
    flips: list[Flip] = field(default_factory=list)


@dataclass
class Table:
    """All of one set of points."""

    points: str  # the set: quick or full
    chip: str  # the digest of the default chip's parameters
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def outdated(self) -> bool:
        """Whether the chip's parameters are others today."""
        return self.chip != chips.load(chips.DEFAULT).digest


def path(quick: bool) -> Path:
    """Where the table of a set lies; only the checkout has it."""
    root = paths.checkout()
    if root is None:
        raise UserError("the table is part of the source tree: run this command from a checkout")
    return root / "experiments" / "baseline" / f"sensitivity-{'quick' if quick else 'full'}.json"


def load(file: Path) -> Table:
    try:
        told = json.loads(file.read_text())
        outcomes = [Outcome(**{**each, "flips": [Flip(*flip) for flip in each["flips"]]}) for each in told["outcomes"]]
        for outcome in outcomes:
            records.check_numbers(vars(outcome), "points", "judged")
        texts = [told["points"], told["chip"], *(text for each in outcomes for text in (each.variant, each.change))]
        texts += [text for each in outcomes for flip in each.flips for text in vars(flip).values()]
        if any(not isinstance(text, str) for text in texts):
            raise ValueError("a name, a change or a verdict is no text")
        return Table(told["points"], told["chip"], outcomes)
    except (OSError, ValueError, TypeError, KeyError) as mistake:
        raise UserError(f"{paths.shown(file)}: {mistake}") from None


def kept(quick: bool) -> Table | None:
    """The table of the source tree, of the set that is asked for or else of the quick one."""
    if paths.checkout() is None:
        return None
    files = [path(each) for each in dict.fromkeys((quick, True))]
    return next((load(file) for file in files if file.exists()), None)


def save(table: Table, file: Path) -> None:
    """A line for each flip, so that a change of one is a change of its line."""
    parts = []
    for outcome in table.outcomes:
        head = {k: v for k, v in asdict(outcome).items() if k != "flips"}
        flips = ",\n".join(f"  {json.dumps(list(asdict(flip).values()))}" for flip in outcome.flips)
        start = json.dumps(head)[:-1]
        parts.append(f'{start}, "flips": [\n{flips}\n]}}' if flips else f'{start}, "flips": []}}')
    first = json.dumps({"points": table.points, "chip": table.chip})[:-1]
    files.folder(file.parent)
    files.write(file, f'{first}, "outcomes": [\n' + ",\n".join(parts) + "\n]}\n")
