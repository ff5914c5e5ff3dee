# SPDX-License-Identifier: Apache-2.0
"""Draws a chip with the utilisation of its parts: tiles with interface and buffer, the links of the
mesh in both directions, and the banks of the controllers beside their routers."""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure as Picture
from matplotlib.patches import Rectangle
from matplotlib.typing import ColorType

from tombolo.scc import draw
from tombolo.scc.simulated import Part, Run

COLORS = "YlOrRd"  # its darkness alone tells the order
TILE, BUFFER, BANK = 0.56, 0.22, 0.09
BANK_ROWS = 4
STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))  # of links, by number
ASIDE = 0.07  # the two directions of a link lie beside each other
INCHES = 1.35  # of a tile with its links


def picture(run: Run) -> Picture:
    """A matplotlib figure. The first row of tiles is at the bottom, as the papers draw it."""
    most = max([p.utilisation for p in run.parts], default=0) or 1
    colors = ScalarMappable(Normalize(0, most), COLORS)
    size = (INCHES * (run.columns + 2.2), INCHES * (run.rows + 0.5))
    drawn, axes = pyplot.subplots(figsize=size, layout="constrained")
    for part in (p for p in run.parts if p.part in DRAW):  # a tile shows its registers by the interface
        color = tuple(colors.to_rgba(part.utilisation))  # type: ignore[arg-type]  # stub: arrays alone
        DRAW[part.part](axes, run, part, color)
    for x in range(run.columns):
        for y in range(run.rows):
            axes.add_patch(_box(x - TILE / 2, y - TILE / 2, TILE, "none"))
    axes.set_xlim(-1.6, run.columns + 0.6)
    axes.set_ylim(-0.6, run.rows - 0.4)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"{run.experiment} {run.point}, {run.end_us:.0f} us on {run.chip}", loc="left")
    bar = drawn.colorbar(colors, ax=axes, shrink=0.6)
    bar.set_label("utilisation; on tiles and controllers also the mean wait in ns")
    return drawn


def svg(run: Run) -> bytes:
    drawn = picture(run)
    made = draw.svg(drawn, f"{run.experiment}-{run.point}")
    pyplot.close(drawn)
    return made


def _box(x: float, y: float, width: float, color: ColorType, height: float | None = None) -> Rectangle:
    return Rectangle((x, y), width, height or width, facecolor=color, edgecolor="#444444", linewidth=0.6)


def _interface(axes: Axes, _run: Run, part: Part, color: ColorType) -> None:
    axes.add_patch(_box(part.x - TILE / 2, part.y - TILE / 2, TILE, color))
    text = f"{part.utilisation:.0%}\n{part.mean_wait_ns:.0f}"
    at = part.x - TILE / 2 + 0.04, part.y + TILE / 2 - 0.04
    axes.text(*at, text, ha="left", va="top", fontsize=6, zorder=4)


def _buffer(axes: Axes, _run: Run, part: Part, color: ColorType) -> None:
    corner = part.x + TILE / 2 - BUFFER, part.y - TILE / 2
    axes.add_patch(_box(*corner, BUFFER, color)).set_zorder(3)


def _link(axes: Axes, _run: Run, part: Part, color: ColorType) -> None:
    dx, dy = STEPS[part.number]
    side_x, side_y = ASIDE * dy, -ASIDE * dx
    start = part.x + dx * TILE / 2 + side_x, part.y + dy * TILE / 2 + side_y
    end = start[0] + dx * (1 - TILE), start[1] + dy * (1 - TILE)
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def _corner(run: Run, part: Part) -> tuple[float, float]:
    """Of a controller's banks: beside the edge of the mesh that its router is at."""
    left = part.x < run.columns / 2
    return (part.x - 1.45 if left else part.x + 0.65), part.y - BANK * BANK_ROWS / 2


def _bank(axes: Axes, run: Run, part: Part, color: ColorType) -> None:
    x, y = _corner(run, part)
    column, row = divmod(part.number, BANK_ROWS)
    axes.add_patch(_box(x + column * BANK, y + row * BANK, BANK, color))


def _controller(axes: Axes, run: Run, part: Part, color: ColorType) -> None:
    x, y = _corner(run, part)
    axes.add_patch(_box(x, y - 0.14, BANK * 8, color, 0.1))
    text = f"{part.utilisation:.0%}, {part.mean_wait_ns:.0f}"
    axes.text(x, y + BANK * BANK_ROWS + 0.04, text, ha="left", va="bottom", fontsize=6)


DRAW = {
    "interface": _interface,
    "buffer": _buffer,
    "link": _link,
    "bank": _bank,
    "controller": _controller,
}
