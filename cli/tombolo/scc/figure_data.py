# SPDX-License-Identifier: Apache-2.0
"""The values behind a figure, ours and the papers', for other programs."""

import csv
import io
import json

from tombolo.scc.catalogue import Experiment, Figure, Number, X, same
from tombolo.scc.verdicts import Measured, Sample

COLUMNS = (
    "series", "x", "unit", "value", "quartile1", "quartile3",
    "paper", "paper_quartile1", "paper_quartile3", "standing", "source",
)  # fmt: skip


def rows(experiment: Experiment, figure: Figure, measured: Measured) -> list[dict]:
    """A row for each place of each series where either has a value; None where it has none."""
    made = []
    for series in figure.series:
        samples = measured.series.get(series.name, [])
        numbers = [n for n in experiment.numbers if n.series == series.name]
        for x in _places(samples, numbers):
            found = next((s for s in samples if same(s.x, x)), None)
            beside: list[Number | None] = [n for n in numbers if same(n.x, x)]
            made += [_row(series.name, x, figure.y.unit, found, number) for number in beside or [None]]
    return made


def _places(samples: list[Sample], numbers: list[Number]) -> list[X]:
    places: list[X] = [each.x for each in samples]
    for number in numbers:
        if not any(same(number.x, x) for x in places):
            places.append(number.x)
    return places


def _row(series: str, x: X, unit: str, found: Sample | None, number: Number | None) -> dict:
    values = (
        series, x, unit,
        found and found.value, found and found.quartile1, found and found.quartile3,
        number and number.value, number and number.quartile1, number and number.quartile3,
        number and number.standing, number and number.source,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def as_csv(rows: list[dict]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(figure: Figure, rows: list[dict]) -> str:
    about = {"figure": figure.name, "title": figure.title, "paper": figure.paper,
             "x": figure.x.label, "y": figure.y.label}  # fmt: skip
    return json.dumps({**about, "values": rows}, indent=1) + "\n"
