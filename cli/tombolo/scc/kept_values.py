# SPDX-License-Identifier: Apache-2.0
"""The measured values of the full set as a file of the repository, beside its verdicts: of each place of
each series, of figures that no paper has as well."""

import csv
import io
from pathlib import Path

from tombolo import files, paths
from tombolo.errors import UserError
from tombolo.scc import store
from tombolo.scc.catalogue import Catalogue
from tombolo.scc.verdicts import Measured

COLUMNS = ("experiment", "series", "x", "unit", "value", "quartile1", "quartile3")

Place = tuple[str, ...]  # experiment, series, x
Values = dict[Place, tuple[str, ...]]  # unit, value and quartiles as text


def path(verdicts: Path) -> Path:
    """Beside the file of the verdicts."""
    return verdicts.with_name(f"{verdicts.stem}-values.csv")


def of(known: Catalogue, results: store.Results) -> Values:
    """Those that a figure has, in the order of the figures."""
    found: Values = {}
    for experiment in known.experiments.values():
        measured, units = Measured(experiment, results.lines(experiment.name)), experiment.units()
        for name, unit in units.items():
            for s in measured.series.get(name, []):
                numbers = (s.value, s.quartile1, s.quartile3)
                texts = ("" if each is None else repr(each) for each in numbers)
                found[experiment.name, name, str(s.x)] = (unit, *texts)
    return found


def save(values: Values, file: Path) -> None:
    """A line for each, so that a change of one is a change of its line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((*place, *cells) for place, cells in values.items())
    files.folder(file.parent)
    files.write(file, text.getvalue())


def load(file: Path) -> Values:
    try:
        heading, *rows = csv.reader(io.StringIO(file.read_text()))
    except (OSError, ValueError, csv.Error) as mistake:
        raise UserError(f"{paths.shown(file)}: {mistake}") from None
    if tuple(heading) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise UserError(f"{paths.shown(file)}: holds no values of experiments")
    return {tuple(row[:3]): tuple(row[3:]) for row in rows}


def merged(before: Values, now: Values, experiments: list[str]) -> Values:
    """Those of now; of the other experiments there are, those of before."""
    measured = {place[0] for place in now}
    both = {**{p: cells for p, cells in before.items() if p[0] not in measured}, **now}
    return {p: both[p] for each in experiments for p in both if p[0] == each}


def others(before: Values, now: Values) -> list[Place]:
    """The places that have another value now, are new or are gone, of the experiments of now."""
    measured = {place[0] for place in now}
    there = {place: cells for place, cells in before.items() if place[0] in measured}
    return [place for place in {**there, **now} if there.get(place) != now.get(place)]
