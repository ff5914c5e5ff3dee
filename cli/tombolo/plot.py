# SPDX-License-Identifier: Apache-2.0
"""Draws a campaign: one line for each row, one mark for each contestant, on a logarithmic axis."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from tombolo.measure import Campaign, Contestant, Target  # noqa: E402

# Told apart without colour too (Okabe and Ito's palette and distinct marks).
STYLES = (
    ("#000000", "o"), ("#E69F00", "s"), ("#56B4E9", "^"), ("#009E73", "v"), ("#F0E442", "P"),
)  # fmt: skip
OURS = ("#D55E00", "D"), ("#0072B2", "X"), ("#CC79A7", "*")


def medians(
    campaign: Campaign, rows: list[Target], entries: list[Contestant], path: Path, subtitle: str
) -> None:
    """Writes the picture to `path`; its suffix says which format."""
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.45 * len(rows)), layout="constrained")
    counts = {True: 0, False: 0}
    for entry in entries:
        styles = STYLES if entry.stock else OURS
        color, marker = styles[counts[entry.stock] % len(styles)]
        counts[entry.stock] += 1
        points = [
            (y, cell)
            for y, row in enumerate(rows)
            if (cell := campaign.cells.get((entry, row.id))) is not None
        ]
        if points:
            axes.errorbar(
                [cell.median for _, cell in points],
                [y for y, _ in points],
                xerr=[
                    [max(0.0, cell.median - cell.low) for _, cell in points],
                    [max(0.0, cell.high - cell.median) for _, cell in points],
                ],
                fmt=marker,
                color=color,
                label=entry.label,
                capsize=2,
                linewidth=1,
            )
    for y, row in enumerate(rows):
        if row.target is not None:
            label = "target" if y == 0 else None
            axes.plot([row.target] * 2, [y - 0.35, y + 0.35], color="#999999", lw=2, label=label)
    axes.set_yticks(range(len(rows)), [row.title for row in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("microseconds (median; bars: lowest q1 to highest q3)")
    axes.set_title(f"One-sided operations, {subtitle}", loc="left")
    axes.grid(axis="x", which="major", linewidth=0.4)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    figure.savefig(path, dpi=140)
    pyplot.close(figure)
