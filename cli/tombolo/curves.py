# SPDX-License-Identifier: Apache-2.0
"""How the time of an operation grows with the number of ranks, beside the stock MPIs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tombolo import records
from tombolo.errors import UserError
from tombolo.measure import Campaign, Entry

# Of bench/one_sided.c: locks, the synchronization of all ranks or of pairs, single accesses.
ROWS = {
    "lock_shared": "lock + unlock, shared, random target",
    "lock_exclusive": "lock + unlock, exclusive, random target",
    "fence": "fence",
    "pscw_ring": "post, start, complete, wait; both neighbours",
    "put_8_flush": "put 8 B + flush",
    "fetch_and_op_flush": "fetch_and_op + flush",
    "fetch_and_op_rank0_flush": "fetch_and_op + flush, all ranks to rank 0",
}
FLAVOR = "allocate"
TIMES = ("median", "q1", "q3", "mean")  # of a record


@dataclass(frozen=True)
class Curve:
    """The times of a row for one contestant, by the number of ranks, in microseconds: the median over
    the rounds of the mean of a round. The median of a round hides ranks that wait for a processor."""

    times: dict[int, float]

    @property
    def growth(self) -> float | None:
        """From the fewest ranks to the most."""
        if len(self.times) < 2 or not self.times[min(self.times)]:
            return None
        return self.times[max(self.times)] / self.times[min(self.times)]


@dataclass(frozen=True)
class Recorded:
    """A contestant of kept records, maybe of another host."""

    label: str

    @property
    def stock(self) -> bool:
        return not self.label.startswith("Tombolo ")


def kept(path: Path) -> tuple[dict[int, Campaign], list[str], list[Recorded], dict]:
    """Of a file of this command: the measurements by number of ranks, the rows, the contestants, and
    the facts about the run."""
    try:
        # A full disk may have cut off the last line.
        context, *measured = [json.loads(line) for line in path.read_text().splitlines(True) if line[-1] == "\n"]
        records.check_numbers(context, "cores")
        records.check_numbers(dict(enumerate(context["ranks"])), *range(len(context["ranks"])))
        campaigns = {n: Campaign(n, [], lambda record: None, lambda text: None) for n in sorted(context["ranks"])}
        rows: dict[str, None] = {}
        entries: dict[Recorded, None] = {}
        for record in measured:
            entry = Recorded(str(record["contestant"]))
            entries[entry] = None
            rows[record["row"]] = None
            if record["kind"] == "broken":
                for campaign in campaigns.values():
                    campaign.broken.add((entry, (record["row"], FLAVOR)))
            else:
                records.check_numbers(record, *TIMES)
                campaigns[record["ranks"]].store(record["round"], entry, record)
    except OSError as mistake:
        raise UserError(f"{path} cannot be read: {mistake.strerror}") from None
    except (ValueError, KeyError, TypeError) as mistake:
        raise UserError(f"{path} holds no records of `bench curves`: {mistake!r}") from None
    names = [name for name in ROWS if name in rows]
    if not names:
        raise UserError(f"{path} holds no records of `bench curves`: no row was measured")
    return campaigns, names, list(entries), context


def curve(campaigns: dict[int, Campaign], entry: Entry, row: str) -> Curve:
    cells = {n: campaigns[n].cells.get((entry, (row, FLAVOR))) for n in sorted(campaigns)}
    return Curve({n: cell.mean for n, cell in cells.items() if cell is not None})


def faster_growing(campaigns: dict[int, Campaign], ours: Entry, entries: Sequence[Entry], row: str) -> str | None:
    """A sentence where ours grows faster than the slowest growing stock MPI, or is behind the best one
    for some number of ranks."""
    mine = curve(campaigns, ours, row)
    stock = [c for e in entries if e.stock and (c := curve(campaigns, e, row)).times]
    growths = [c.growth for c in stock if c.growth is not None]
    faults = []
    if mine.growth is not None and growths and mine.growth > min(growths):
        faults.append(f"grows {mine.growth:.3g} times, a stock MPI {min(growths):.3g} times")
    for ranks, time in mine.times.items():
        best = min((c.times[ranks] for c in stock if ranks in c.times), default=None)
        if best is not None and time > best:
            faults.append(f"{ranks} ranks: {time:.3g} us, the best stock MPI {best:.3g} us")
    return f"{ROWS[row]}, {ours.label}: {'; '.join(faults)}" if faults else None


def spread(campaign: Campaign, entry: Entry, row: str) -> tuple[float, float] | None:
    """The lowest and the highest mean of a round."""
    cell = campaign.cells.get((entry, (row, FLAVOR)))
    if cell is None:
        return None
    means = [sample.mean for sample in cell.rounds]
    return min(means), max(means)
