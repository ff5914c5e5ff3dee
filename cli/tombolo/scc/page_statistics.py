# SPDX-License-Identifier: Apache-2.0
"""The report's pictures of the chip with the utilisation of its parts, for points that have them."""

from html import escape
from pathlib import Path

from tombolo import hints, paths
from tombolo.scc import statistics
from tombolo.scc.markup import data_uri, details, table
from tombolo.scc.simulated import Run


def render(saved: list[tuple[Run | None, Path]]) -> str:
    """`saved`: the runs to show, and the files of all runs of their points; none for a file that
    cannot be read, which is named."""
    if not saved:
        return f"<p>None, {hints.STATISTICS}.</p>"
    lead = (
        "<p>Bright parts are idle. Tiles: utilisation of the interface to the mesh, with the mean wait "
        "there in nanoseconds; in their corner the message passing buffer. Beside the edges: the banks of "
        "a controller, and the mean wait from arrival until memory is read or written.</p>"
    )
    return lead + "\n".join(_run(run, file) if run else _unread(file) for run, file in saved)


def _unread(file: Path) -> str:
    return f"<p class='bad'>{escape(paths.shown(file))} cannot be read: remove it, or measure it again.</p>"


def _run(run: Run, file: Path) -> str:
    name = f"{run.experiment} {run.point}"
    picture = data_uri("image/svg+xml", file.with_suffix(".svg").read_bytes())
    values = data_uri("application/json", file.read_bytes())
    parts = table(
        ("busiest of its kind", "utilisation", "its mean wait", "mean wait of the kind"),
        ([escape(cell) for cell in row] for row in statistics.summary(run)),
    )
    cores = table(("of the cores' time", ""), ([escape(c) for c in row] for row in statistics.of_cores(run)))
    return (
        f"<figure id='statistics-{escape(file.stem)}'>"
        f"<div class='scroll'><img alt='{escape(name, quote=True)}: utilisation' src='{picture}'></div>"
        f"<figcaption>{escape(name)} <a class='data' download='{escape(file.name)}' href='{values}'>JSON</a>"
        f"</figcaption></figure>" + details(f"{name}: where requests wait", parts + cores)
    )
