# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs nothing beside it."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from tombolo.scc.catalogue import Experiment, Figure
from tombolo.scc.chips import Parameter
from tombolo.scc.verdicts import NO_MEASUREMENT, Deviation, Verdict

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; }
body { margin: 2em auto; max-width: 72em; padding: 0 1em; }
h2 { border-bottom: 1px solid #bbb; margin-top: 2.2em; }
table { border-collapse: collapse; margin: .8em 0; font-size: 13px; }
th, td { border: 1px solid #ccc; padding: .2em .5em; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { background: #e4f3e6; } .bad { background: #fbe3d6; } .none { color: #777; }
img { max-width: 100%; } figure { margin: 1.2em 0; } figcaption { font-size: 13px; color: #555; }
.scroll { overflow-x: auto; }
"""
WORDS = {True: ("held", "good"), False: ("not held", "bad"), None: (NO_MEASUREMENT, "none")}


@dataclass
class Section:
    """An experiment with all that is known of it."""

    experiment: Experiment
    pictures: list[tuple[Figure, Path]] = field(default_factory=list)  # figure, its SVG
    deviations: list[Deviation] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """How many of the papers' numbers are met, and the largest deviation."""
        shares = [abs(each.share) for each in self.deviations if each.share is not None]
        if not shares:
            return NO_MEASUREMENT
        free = [each for each in self.deviations if not each.number.fitted]
        good = sum(each.good is True for each in free)
        fitted = len(self.deviations) - len(free)
        return (
            f"{good} of {len(free)} numbers within {self.experiment.within:.0%}, "
            f"{f'{fitted} more were fitted, ' if fitted else ''}"
            f"{len(self.deviations) - len(shares)} not measured, largest deviation "
            f"{max(shares):.1%}"
        )


@dataclass
class Report:
    """All sections, and the sources of the numbers."""

    about: dict[str, str]
    sections: list[Section]
    parameters: tuple[Parameter, ...] = ()


def render(report: Report) -> str:
    """The page's text."""
    body = [
        "<h1>The simulated SCC beside the papers</h1>",
        _table(("", ""), ([escape(key), escape(value)] for key, value in report.about.items())),
        "<p>Hollow marks are the papers' numbers: diamonds where they are printed as numbers (exact), "
        "hexagons where they were read from words such as &ldquo;around&rdquo; or derived "
        "(approximate). A parameter of the chip was chosen by those that are called fitted: they show "
        "nothing.</p>",
        _contents(report.sections),
        "<h2 id='claims'>Claims</h2>",
        claims([verdict for section in report.sections for verdict in section.verdicts]),
        "<h2 id='outside'>Deviations beyond the limit</h2>",
        outside([each for section in report.sections for each in section.deviations]),
        *(_section(section) for section in report.sections),
        "<h2 id='parameters'>Parameters of the chip</h2>",
        _parameters(report.parameters),
    ]
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<title>The simulated SCC beside the papers</title>"
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def claims(verdicts: list[Verdict]) -> str:
    rows = []
    for each in verdicts:
        word, style = WORDS[each.held]
        rows.append(
            [
                escape(each.experiment),
                escape(each.claim.name),
                escape(each.wanted),
                escape(each.found),
                (word, style),
                escape(each.claim.source),
                escape(each.reason if each.held is False else ""),
            ]
        )
    return _table(("experiment", "claim", "wanted", "found", "", "source", "reason"), rows)


def outside(deviations: list[Deviation]) -> str:
    """Those beyond the limit of their experiment, with the reason."""
    chosen = [each for each in deviations if each.good is False]
    if not chosen:
        return "<p>None among the measured values.</p>"
    return deviation_table(chosen)


def deviation_table(deviations: list[Deviation]) -> str:
    headings = (
        "experiment", "series", "x", "", "paper", "ours", "unit", "deviation", "the paper's number",
        "source", "reason",
    )  # fmt: skip
    return _table(headings, (_deviation_row(each) for each in deviations))


def _deviation_row(each: Deviation) -> list:
    style = {True: "good", False: "bad", None: "none"}[each.good]
    return [
        escape(each.experiment),
        escape(each.number.series),
        escape(str(each.number.x)),
        "" if each.part == "value" else each.part,
        (f"{each.paper:g}", "number"),
        ("" if each.ours is None else f"{each.ours:.4g}", "number"),
        escape(each.unit),
        (percent(each.share), f"number {style}"),
        each.number.standing,
        escape(each.number.source),
        escape(each.reason),
    ]


def percent(share: float | None) -> str:
    return NO_MEASUREMENT if share is None else f"{share:+.1%}"


def _contents(sections: list[Section]) -> str:
    links = [("claims", "Claims"), ("outside", "Deviations beyond the limit")]
    links += [(s.experiment.name, s.experiment.title) for s in sections]
    links.append(("parameters", "Parameters of the chip"))
    items = "".join(f"<li><a href='#{key}'>{escape(title)}</a></li>" for key, title in links)
    return f"<ul>{items}</ul>"


def _section(section: Section) -> str:
    made = section.experiment
    parts = [f"<h2 id='{made.name}'>{escape(made.title)}</h2>"]
    if papers := made.papers():
        parts.append(f"<p>{escape(papers)}</p>")
    parts += [f"<p class='bad'>{escape(each)}</p>" for each in section.strangers]
    for figure, svg in section.pictures:
        caption = f"{figure.title}. {figure.paper or 'In no paper'}."
        parts.append(
            f"<figure><img alt='{escape(figure.title, quote=True)}' src='{_data_uri(svg)}'>"
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
        parts.append(_meanings(figure))
    if section.deviations:
        title = f"The papers' numbers beside ours: {section.summary}"
        table = deviation_table(section.deviations)
        parts.append(_details(title, table, opened=made.name == "calibration"))
    if section.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
        parts.append(f"<ul>{notes}</ul>")
    return "\n".join(parts)


def _data_uri(svg: Path) -> str:
    """The picture as an address that the page holds by itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode()


def _meanings(figure: Figure) -> str:
    rows = ([escape(series.name), escape(series.meaning)] for series in figure.series)
    return _details("The series", _table(("series", "meaning"), rows))


def _details(title: str, inside: str, opened: bool = False) -> str:
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(title)}</summary>{inside}</details>"


def _parameters(parameters: tuple[Parameter, ...]) -> str:
    """With the papers' numbers, by which the sources name them."""
    if not parameters:
        return "<p>The files of the chips are not here.</p>"
    papers = "<p>000: Christgau; 001: Christgau and Schnor; 002: Bakker.</p>"
    rows = (
        [escape(each.name), escape(str(each.value)), escape(each.source)] for each in parameters
    )
    return papers + _table(("parameter", "value", "source"), rows)


def _table(headings: Iterable[str], rows: Iterable[list]) -> str:
    """Cells are HTML, or a pair of HTML and a class."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    lines = []
    for row in rows:
        lines.append(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>")
    return f"<div class='scroll'><table><tr>{head}</tr>{''.join(lines)}</table></div>"


def _cell(cell: str | tuple[str, str]) -> str:
    text, style = cell if isinstance(cell, tuple) else (cell, "")
    return f"<td class='{style}'>{text}</td>" if style else f"<td>{text}</td>"
