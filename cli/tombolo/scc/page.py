# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs nothing beside it."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from tombolo.scc import page_sensitivity, page_statistics, totals
from tombolo.scc.catalogue import Experiment, Figure
from tombolo.scc.chips import Parameter
from tombolo.scc.markup import data_uri, details, table
from tombolo.scc.sensitivity_table import Table
from tombolo.scc.simulated import Run
from tombolo.scc.verdicts import NO_MEASUREMENT, Deviation, Verdict

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; }
body { margin: 2em auto; max-width: 72em; padding: 0 1em; overflow-wrap: break-word; }
h2 { border-bottom: 1px solid #bbb; margin-top: 2.2em; }
.lead { font-size: 1.25em; }
table { border-collapse: collapse; margin: .8em 0; font-size: 13px; }
th, td { border: 1px solid #ccc; padding: .2em .5em; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { background: #e4f3e6; } .bad { background: #fbe3d6; } .none { color: #777; }
img { display: block; max-width: 100%; height: auto; } figure { margin: 1.2em 0; }
figcaption { font-size: 13px; color: #555; } figcaption a { white-space: nowrap; }
.scroll { overflow-x: auto; } .scroll img { max-width: none; }
@media (max-width: 640px) {
  body { margin: 1em auto; } h1 { font-size: 1.5em; } h2 { font-size: 1.2em; }
  img { margin: auto; }
  .cards tr:first-child, .cards td:empty { display: none; }
  .cards table, .cards tbody, .cards tr, .cards td { display: block; }
  .cards tr { border: 1px solid #ccc; margin-bottom: .6em; } .cards td { border: 0; }
  .cards td.number { text-align: left; }
  .cards td::before { content: attr(data-label); color: #777; margin-right: .5em; }
}
@media print {
  body { margin: 0; max-width: none; font-size: 10pt; }
  .scroll { overflow: visible; } .scroll img { max-width: 100%; }
  table { font-size: 7pt; } td { overflow-wrap: anywhere; }
  figure, tr { break-inside: avoid; } h2, summary { break-after: avoid; }
  a { color: inherit; text-decoration: none; } .data { display: none; }
  details::details-content { content-visibility: visible; height: auto; }
}
"""
NARROW = "(max-width: 640px)"
STYLES = {True: "good", False: "bad", None: "none"}


@dataclass
class Picture:
    """A drawn figure: its SVG for wide and for narrow pages, and its values as texts."""

    figure: Figure
    wide: Path
    narrow: Path
    csv: str
    json: str


@dataclass
class Section:
    """An experiment with all that is known of it."""

    experiment: Experiment
    pictures: list[Picture] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # the experiment's, with our values
    notes: list[str] = field(default_factory=list)
    measured: bool = False  # whether any of its series was

    @property
    def summary(self) -> str:
        """How many of the papers' numbers are met, and the largest deviation."""
        shares = [abs(each.share) for each in self.deviations if each.share is not None]
        if not shares:
            return NO_MEASUREMENT
        free = [each for each in self.deviations if each.number.evidence == "independent"]
        good = sum(each.good is True for each in free)
        others = len(self.deviations) - len(free)
        return (
            f"{good} of {len(free)} independent numbers within {self.experiment.within:.0%}, "
            f"{f'{others} more are none, ' if others else ''}"
            f"{len(self.deviations) - len(shares)} not measured, largest deviation "
            f"{max(shares):.1%}"
        )


@dataclass
class Report:
    """All sections, and the sources of the numbers."""

    about: dict[str, str]
    sections: list[Section]
    parameters: tuple[Parameter, ...] = ()
    sensitivity: Table | None = None  # of the source tree
    statistics: list[tuple[Run | None, Path]] = field(default_factory=list)


def render(report: Report) -> str:
    """The page's text."""
    verdicts = [each for section in report.sections for each in section.verdicts]
    deviations = [each for section in report.sections for each in section.deviations]
    body = [
        "<h1>The simulated SCC beside the papers</h1>",
        f"<p class='lead'>{escape(totals.headline(verdicts, deviations))}</p>",
        _totals(verdicts, deviations),
        table(("", ""), ([escape(key), escape(value)] for key, value in report.about.items())),
        "<p>Hollow marks are the papers' numbers: diamonds where they are printed as numbers (exact), "
        "hexagons where they were read from words such as &ldquo;around&rdquo; or derived "
        "(approximate).</p>",
        _contents(report.sections),
        "<h2 id='claims'>Claims</h2>",
        claims(verdicts),
        "<h2 id='outside'>Deviations beyond the limit</h2>",
        outside(deviations),
        *(_section(section) for section in report.sections),
        "<h2 id='sensitivity'>Sensitivity</h2>",
        page_sensitivity.render(report.sensitivity, verdicts),
        "<h2 id='statistics'>Statistics of runs</h2>",
        page_statistics.render(report.statistics),
        "<h2 id='parameters'>Parameters of the chip</h2>",
        _parameters(report.parameters),
    ]
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<title>The simulated SCC beside the papers</title>"
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _totals(verdicts: list[Verdict], deviations: list[Deviation]) -> str:
    headings = (
        "evidence", "claims that hold", "that do not hold", "not judged",
        "numbers met", "numbers not met", "not judged", "which",
    )  # fmt: skip
    pairs = zip(totals.of_claims(verdicts), totals.of_numbers(deviations), strict=True)
    rows = []
    for of_claims, of_numbers in pairs:
        counts = [n for t in (of_claims, of_numbers) for n in (t.held, t.failed, t.open)]
        numbers = [(str(n), "number") for n in counts]
        meaning = totals.MEANINGS[of_claims.standing]
        rows.append([escape(of_claims.standing), *numbers, escape(meaning)])
    return table(headings, rows, cards=True)


def claims(verdicts: list[Verdict]) -> str:
    headings = ("experiment", "claim", "wanted", "found", "", "evidence", "source", "reason")
    return table(headings, (_claim_row(each) for each in verdicts), cards=True)


def _claim_row(each: Verdict) -> list:
    claim = each.claim
    return [
        escape(each.experiment),
        escape(claim.name),
        escape(each.wanted),
        escape(each.found),
        (each.word, STYLES[each.held]),
        escape(f"{claim.standing}: {claim.rests_on}" if claim.rests_on else claim.standing),
        escape(f"{claim.source}; bounds: {claim.bounds}" if claim.bounds else claim.source),
        escape(each.reason if each.held is False else ""),
    ]


def outside(deviations: list[Deviation]) -> str:
    """Those beyond the limit of their experiment, with the reason."""
    chosen = [each for each in deviations if each.good is False]
    if not chosen:
        return "<p>None among the measured values.</p>"
    return deviation_table(chosen)


def deviation_table(deviations: list[Deviation]) -> str:
    headings = (
        "experiment", "series", "x", "", "paper", "ours", "unit", "deviation", "standing",
        "source", "reason",
    )  # fmt: skip
    return table(headings, (_deviation_row(each) for each in deviations), cards=True)


def _deviation_row(each: Deviation) -> list:
    return [
        escape(each.experiment),
        escape(each.number.series),
        escape(str(each.number.x)),
        "" if each.part == "value" else each.part,
        (f"{each.paper:g}", "number"),
        ("" if each.ours is None else f"{each.ours:.4g}", "number"),
        escape(each.unit),
        (percent(each.share), f"number {STYLES[each.good]}"),
        each.number.standing,
        escape(each.number.source),
        escape(each.reason),
    ]


def percent(share: float | None) -> str:
    return NO_MEASUREMENT if share is None else f"{share:+.1%}"


def _contents(sections: list[Section]) -> str:
    links = [("claims", "Claims"), ("outside", "Deviations beyond the limit")]
    links += [(s.experiment.name, s.experiment.title) for s in sections]
    links += [("sensitivity", "Sensitivity"), ("statistics", "Statistics of runs")]
    links.append(("parameters", "Parameters of the chip"))
    items = "".join(f"<li><a href='#{key}'>{escape(title)}</a></li>" for key, title in links)
    return f"<ul>{items}</ul>"


def _section(section: Section) -> str:
    made = section.experiment
    parts = [f"<h2 id='{made.name}'>{escape(made.title)}</h2>"]
    if papers := made.papers():
        parts.append(f"<p>{escape(papers)}</p>")
    parts += [f"<p>{escape(each)}</p>" for each in section.remarks]
    parts += [f"<p class='bad'>{escape(each)}</p>" for each in section.strangers]
    for picture in section.pictures:
        parts += [_figure(picture), _meanings(picture.figure)]
    if section.deviations:
        title = f"The papers' numbers beside ours: {section.summary}"
        numbers = deviation_table(section.deviations)
        parts.append(details(title, numbers, opened=made.many_numbers))
    if section.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
        parts.append(f"<ul>{notes}</ul>")
    return "\n".join(parts)


def _figure(picture: Picture) -> str:
    figure = picture.figure
    caption = escape(f"{figure.title}. {figure.paper or 'In no paper'}.")
    links = [
        f"<a class='data' download='{figure.name}.{kind}' href='{data_uri(type_, text.encode())}'>{kind.upper()}</a>"
        for kind, type_, text in (
            ("csv", "text/csv", picture.csv),
            ("json", "application/json", picture.json),
        )
    ]
    narrow, wide = (data_uri("image/svg+xml", p.read_bytes()) for p in (picture.narrow, picture.wide))
    return (
        f"<figure id='{figure.name}'><picture><source media='{NARROW}' srcset='{narrow}'>"
        f"<img alt='{escape(figure.title, quote=True)}' src='{wide}'></picture>"
        f"<figcaption>{caption} {' '.join(links)}</figcaption></figure>"
    )


def _meanings(figure: Figure) -> str:
    rows = ([escape(series.name), escape(series.meaning)] for series in figure.series)
    return details("The series", table(("series", "meaning"), rows))


def _parameters(parameters: tuple[Parameter, ...]) -> str:
    """With the papers' numbers, by which the sources name them."""
    if not parameters:
        return "<p>The files of the chips are not here.</p>"
    papers = "<p>000: Christgau; 001: Christgau and Schnor; 002: Bakker.</p>"
    rows = ([escape(each.name), escape(str(each.value)), escape(each.source)] for each in parameters)
    return papers + table(("parameter", "value", "source"), rows)
