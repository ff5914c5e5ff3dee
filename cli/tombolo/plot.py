# SPDX-License-Identifier: Apache-2.0
"""Draws a run: one line for each row, one mark for each contestant, on a logarithmic axis."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tombolo import curves as scaling
from tombolo import dsm_bench, files, svp_bench
from tombolo.measure import Campaign, Contestant, Entry, Target

# Told apart without colour too (Okabe and Ito's palette and distinct marks).
STYLES = (
    ("#000000", "o"), ("#E69F00", "s"), ("#56B4E9", "^"), ("#009E73", "v"), ("#F0E442", "P"),
)  # fmt: skip
OURS = ("#D55E00", "D"), ("#0072B2", "X"), ("#CC79A7", "*")


class Point(NamedTuple):
    """A mark in a row, with the ends of its bar."""

    row: int
    value: float
    low: float
    high: float


def medians(campaign: Campaign, rows: list[Target], entries: list[Contestant], path: Path, subtitle: str) -> None:
    """Writes the picture to `path`; its suffix says which format."""
    figure, axes = _axes([row.title for row in rows])
    counts = {True: 0, False: 0}
    for entry in entries:
        styles = STYLES if entry.stock else OURS
        style = styles[counts[entry.stock] % len(styles)]
        counts[entry.stock] += 1
        points = [
            Point(y, cell.median, cell.low, cell.high)
            for y, row in enumerate(rows)
            if (cell := campaign.cells.get((entry, row.id))) is not None
        ]
        _draw(axes, points, entry.label, style)
    for y, row in enumerate(rows):
        if row.target is not None:
            _goal(axes, y, row.target, "target" if y == 0 else None)
    axes.set_xlabel("microseconds (median; bars: lowest q1 to highest q3)")
    axes.set_title(f"One-sided operations, {subtitle}", loc="left")
    _write(figure, axes, path)


def ratios(
    all_measured: list[dsm_bench.Measured],
    entries: list[dsm_bench.Contestant],
    path: Path,
    subtitle: str,
) -> None:
    """The kernels of virtual shared memory beside Pthreads; `path` as above."""
    figure, axes = _axes([measured.kernel.title for measured in all_measured])
    for number, entry in enumerate(entries):
        points = [
            Point(y, *ratio) for y, measured in enumerate(all_measured) if (ratio := measured.ratio(entry)) is not None
        ]
        styles = (*OURS, *STYLES)
        _draw(axes, points, entry.label, styles[number % len(styles)])
    label: str | None = "goal of window"
    for y, measured in enumerate(all_measured):
        if measured.kernel.goal is not None:
            _goal(axes, y, measured.kernel.goal, label)
            label = None
    axes.axvline(1, color="#000000", lw=1, label="Pthreads")
    axes.set_xlabel("how quick beside Pthreads (1: as quick; median; bars: lowest to highest)")
    axes.set_title(f"Virtual shared memory, {subtitle}", loc="left")
    _write(figure, axes, path)


def families(rows: list[svp_bench.Row], path: Path, subtitle: str) -> None:
    """Families beside other run-times; `path` as above."""
    figure, axes = _axes([row.title for row in rows])
    counts = {True: 0, False: 0}
    for name in dict.fromkeys(name for row in rows for name in row.samples):
        mine = name.startswith(svp_bench.OURS)
        styles = OURS if mine else STYLES
        points = [Point(y, *row.time(name)) for y, row in enumerate(rows) if name in row.samples]
        _draw(axes, points, name, styles[counts[mine] % len(styles)])
        counts[mine] += 1
    axes.set_xlabel("nanoseconds a task (median; bars: lowest to highest)")
    axes.set_title(f"Families of threads, {subtitle}", loc="left")
    _write(figure, axes, path)


def curves(
    campaigns: dict[int, Campaign],
    rows: list[str],
    entries: Sequence[Entry],
    path: Path,
    subtitle: str,
) -> None:
    """A small picture for each row: its time by the number of ranks; `path` as above."""
    across = min(2, len(rows))
    down = -(-len(rows) // across)
    figure, grid = pyplot.subplots(down, across, figsize=(5 * across, 3 * down), layout="constrained", squeeze=False)
    for axes in grid.flat[len(rows) :]:
        axes.set_axis_off()
    for axes, row in zip(grid.flat, rows, strict=False):
        counts = {True: 0, False: 0}
        for entry in entries:
            styles = STYLES if entry.stock else OURS
            color, marker = styles[counts[entry.stock] % len(styles)]
            counts[entry.stock] += 1
            times = scaling.curve(campaigns, entry, row).times
            axes.plot(list(times), list(times.values()), color=color, marker=marker, label=entry.label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(list(campaigns), [str(n) for n in campaigns])
        axes.set_title(scaling.ROWS[row], fontsize="small")
        axes.grid(linewidth=0.4)
    grid[0][0].legend(fontsize="x-small")
    figure.supxlabel("ranks")
    figure.supylabel("microseconds (mean)")
    figure.suptitle(f"One-sided operations by the number of ranks, {subtitle}")
    _save(figure, path)


def _axes(titles: list[str]) -> tuple[Figure, Axes]:
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.45 * len(titles)), layout="constrained")
    axes.set_yticks(range(len(titles)), titles)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.grid(axis="x", which="major", linewidth=0.4)
    return figure, axes


def _draw(axes: Axes, points: list[Point], label: str, style: tuple[str, str]) -> None:
    if not points:
        return
    color, marker = style
    axes.errorbar(
        [point.value for point in points],
        [point.row for point in points],
        xerr=[
            [max(0.0, point.value - point.low) for point in points],
            [max(0.0, point.high - point.value) for point in points],
        ],
        fmt=marker,
        color=color,
        label=label,
        capsize=2,
        linewidth=1,
    )


def _goal(axes: Axes, row: int, value: float, label: str | None) -> None:
    axes.plot([value] * 2, [row - 0.35, row + 0.35], color="#999999", lw=2, label=label)


def _write(figure: Figure, axes: Axes, path: Path) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    with files.replaced(path) as fresh:
        figure.savefig(fresh, dpi=140)
    pyplot.close(figure)
