# SPDX-License-Identifier: Apache-2.0
"""Draws the figures: our values as lines and bars, the papers' numbers as hollow marks."""

import io
import textwrap
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from tombolo import files
from tombolo.scc.catalogue import Experiment, Figure, Number, X, same
from tombolo.scc.verdicts import Measured, Sample

# Told apart without colour too: Okabe and Ito's palette, distinct marks, then another dash.
STYLES = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "v"),
    ("#56B4E9", "P"), ("#E69F00", "X"), ("#000000", "D"),
)  # fmt: skip
DASHES = ("-", "--", ":")
PAPER_MARKS = {True: "D", False: "h"}  # exact, approximate
PAPER_NAMES = {True: "paper, exact", False: "paper, approximate"}
SMALLEST_PT = 7  # of all letters: legible where a phone makes a narrow picture smaller still
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": "small"}
BELOW: dict[str, Any] = {"loc": "outside lower left", "fontsize": "small"}
WIDE = (9.0, 4.8)
NARROW = (4.4, 3.6)  # without the legend
NARROW_TITLE = 48  # letters in a line
ENTRY = 0.17  # the height of one in the legend
DPI = 140


def is_measured(figure: Figure, measured: Measured) -> bool:
    """Whether there is anything to draw but the papers' numbers."""
    return any(series.name in measured.series for series in figure.series)


def picture(experiment: Experiment, figure: Figure, measured: Measured, narrow: bool = False) -> Picture:
    """A matplotlib figure; `narrow`: for a phone, with the legend below the axes."""
    names = {series.name for series in figure.series}
    numbers = [n for n in experiment.numbers if n.series in names]
    drawn, axes = pyplot.subplots(figsize=WIDE, layout="constrained")
    if figure.kind == "stacked":
        legend = _stacked(axes, figure, measured)
    elif figure.kind == "matrix":
        legend = _matrix(axes, figure, measured)
    else:
        {"lines": _lines, "bars": _bars}[figure.kind](axes, figure, measured, numbers)
        legend = _legend(axes, numbers)
    _dress(axes, figure, narrow)
    if narrow:
        drawn.set_size_inches(NARROW[0], NARROW[1] + ENTRY * len(legend[0]))
        if legend[0]:
            drawn.legend(*legend, **BELOW)
    elif legend[0]:
        axes.legend(*legend, **BESIDE)
    return drawn


def save(drawn: Picture, stem: Path) -> None:
    """Writes STEM.png and STEM.svg and frees the figure."""
    with files.replaced(stem.with_suffix(".png")) as fresh:
        drawn.savefig(fresh, dpi=DPI)
    files.write(stem.with_suffix(".svg"), svg(drawn, stem.name))
    pyplot.close(drawn)


def remove(stem: Path) -> None:
    """Removes the files that `save` wrote before."""
    for suffix in (".png", ".svg"):
        stem.with_suffix(suffix).unlink(missing_ok=True)


def svg(drawn: Picture, salt: str) -> bytes:
    """The same bytes for the same values: neither a date nor random names in it."""
    text = io.BytesIO()
    with pyplot.rc_context({"svg.hashsalt": salt}):
        drawn.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _style(number: int) -> tuple[str, str, str]:
    color, mark = STYLES[number % len(STYLES)]
    return color, mark, DASHES[number // len(STYLES) % len(DASHES)]


def _lines(axes: Axes, figure: Figure, measured: Measured, numbers: list[Number]) -> None:
    for place, series in enumerate(figure.series):
        color, mark, dash = _style(place)
        samples = measured.series.get(series.name, [])
        printed = [n for n in numbers if n.series == series.name]
        if samples:
            axes.errorbar(
                [s.x for s in samples],
                [s.value for s in samples],
                yerr=_whiskers(samples),
                color=color, marker=mark, linestyle=dash, label=series.name,
                markersize=4, linewidth=1.2, capsize=2, elinewidth=0.7,
            )  # fmt: skip
        elif printed:
            label = f"{series.name} (paper only)"
            axes.plot([], [], color=color, marker=mark, linestyle=dash, label=label)
        for exact in (True, False):
            chosen = [n for n in printed if n.exact == exact]
            _printed(axes, [n.x for n in chosen], [n.value for n in chosen], exact, color)


def _whiskers(samples: list[Sample]) -> list[list[float]] | None:
    if all(s.quartile1 is None or s.quartile3 is None for s in samples):
        return None
    low = [max(0.0, s.value - s.quartile1) if s.quartile1 is not None else 0.0 for s in samples]
    high = [max(0.0, s.quartile3 - s.value) if s.quartile3 is not None else 0.0 for s in samples]
    return [low, high]


def _printed(axes: Axes, xs: list, ys: list, exact: bool, color: str) -> None:
    if xs:
        axes.plot(
            xs, ys, linestyle="none", marker=PAPER_MARKS[exact], markersize=9, zorder=5,
            markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.4,
        )  # fmt: skip


def _bars(axes: Axes, figure: Figure, measured: Measured, numbers: list[Number]) -> None:
    shown = [s for s in figure.series if s.name in measured.series or _has(numbers, s.name)]
    width = 0.8 / max(1, len(shown))
    for place, series in enumerate(shown):
        color, _, _ = _style(place)
        shift = (place - (len(shown) - 1) / 2) * width
        samples = {_slot(figure, s.x): s.value for s in measured.series.get(series.name, [])}
        xs, heights = [x + shift for x in samples], list(samples.values())
        axes.bar(xs, heights, width * 0.92, color=color, label=series.name)
        for exact in (True, False):
            chosen = [n for n in numbers if n.series == series.name and n.exact == exact]
            xs = [_slot(figure, n.x) + shift for n in chosen]
            _printed(axes, xs, [n.value for n in chosen], exact, "#000000")
    axes.set_xticks(range(len(figure.x.categories)), [str(c) for c in figure.x.categories])


def _stacked(axes: Axes, figure: Figure, measured: Measured) -> tuple[list, list[str]]:
    """One bar for each `bar` and category, its parts as shares of the whole: the wholes differ by
    orders of magnitude between categories and stand above the bars. Returns the legend."""
    bars = list(dict.fromkeys(s.bar for s in figure.series))
    parts = list(dict.fromkeys(s.part for s in figure.series))
    width = 0.8 / len(bars)
    ticks: dict[float, str] = {}
    for category in figure.x.categories:
        for place, bar in enumerate(bars):
            values = {
                s.part: found.value for s in figure.series if s.bar == bar and (found := measured.at(s.name, category))
            }
            if not values:
                continue
            x = _slot(figure, category) + (place - (len(bars) - 1) / 2) * width
            ticks[x] = f"{category}: {bar}"
            _stack(axes, x, width * 0.9, values, parts)
    handles = [Patch(color=_style(place)[0], label=part) for place, part in enumerate(parts)]
    axes.set_xticks(list(ticks), list(ticks.values()), rotation=60, ha="right", fontsize=SMALLEST_PT)
    axes.set_ylim(0, 122)
    axes.set_ylabel("share of the time / %")
    return handles[::-1], parts[::-1]


def _stack(axes: Axes, x: float, width: float, values: dict[str, float], parts: list[str]) -> None:
    whole, height = sum(values.values()), 0.0
    for part in parts:
        share = 100 * values.get(part, 0.0) / whole if whole else 0.0
        axes.bar([x], [share], width, bottom=[height], color=_style(parts.index(part))[0])
        height += share
    axes.text(x, 101, f"{whole:.3g} s", ha="center", va="bottom", fontsize=SMALLEST_PT, rotation=60)


def _matrix(axes: Axes, figure: Figure, measured: Measured) -> tuple[list, list[str]]:
    """A row for each series and a column for each x from 0 on, the darker the larger the value.
    There is no legend: a bar says what the shades mean."""
    of_figure = [measured.series.get(series.name, []) for series in figure.series]
    columns = range(1 + max(int(sample.x) for samples in of_figure for sample in samples))
    shades = [
        [found.value if (found := measured.at(series.name, x)) else 0.0 for x in columns] for series in figure.series
    ]
    image = axes.imshow(shades, cmap="Greys", vmin=0)
    axes.figure.colorbar(image, ax=axes, label=figure.y.label)
    return [], []


def _slot(figure: Figure, x: X) -> int:
    return next((i for i, each in enumerate(figure.x.categories) if same(each, x)), 0)


def _has(numbers: list[Number], series: str) -> bool:
    return any(n.series == series for n in numbers)


def _dress(axes: Axes, figure: Figure, narrow: bool) -> None:
    title = textwrap.fill(figure.title, NARROW_TITLE) if narrow else figure.title
    axes.set_title(title, loc="left", fontsize="medium" if narrow else "large")
    axes.set_xlabel(figure.x.label)
    if figure.kind == "matrix":
        axes.set_ylabel(figure.rows)
        return
    axes.grid(axis="both", which="major", linewidth=0.3)
    axes.set_axisbelow(True)
    if figure.kind == "stacked":
        return
    axes.set_ylabel(figure.y.label)
    _scale(axes, "y", figure.y.scale)
    if figure.kind == "lines":
        _scale(axes, "x", figure.x.scale)
    if figure.y.scale == "linear" and axes.dataLim.ymin >= 0:
        axes.set_ylim(bottom=0)


def _scale(axes: Axes, which: str, scale: str) -> None:
    if scale not in ("log", "log2"):
        return
    set_scale = axes.set_xscale if which == "x" else axes.set_yscale
    set_scale("log", base=2 if scale == "log2" else 10)
    axis = axes.xaxis if which == "x" else axes.yaxis
    if scale == "log2":
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def short(value: float) -> str:
    """4096 as 4Ki, 0.5 as 0.5: labels of logarithmic axes."""
    for size, suffix in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if value >= size and value % size == 0:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"


def _legend(axes: Axes, numbers: list[Number]) -> tuple[list, list[str]]:
    """The handles of the series and of the marks of the papers' numbers, and their names."""
    handles, labels = axes.get_legend_handles_labels()
    for exact in (True, False):
        if any(n.exact == exact for n in numbers):
            handles.append(
                Line2D([], [], linestyle="none", marker=PAPER_MARKS[exact], markersize=9,
                       markerfacecolor="none", markeredgecolor="#444444", markeredgewidth=1.4)
            )  # fmt: skip
            labels.append(PAPER_NAMES[exact])
    return handles, labels
