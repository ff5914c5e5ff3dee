# SPDX-License-Identifier: Apache-2.0
"""Puts measured values, papers and pictures together: figures, deviations, verdicts, the page."""

from pathlib import Path

from tombolo import files
from tombolo.scc import chips, figure_data, page, sensitivity_table, statistics, store, verdicts
from tombolo.scc.catalogue import Catalogue, Experiment, same
from tombolo.scc.native import Setting
from tombolo.scc.page import Picture, Report, Section
from tombolo.scc.verdicts import Measured


def folder(setting: Setting) -> Path:
    """Where the report of a setting lies: its pictures and index.html."""
    return store.folder() / f"report-{setting.name}"


def gather(catalogue: Catalogue, results: store.Results, setting: Setting) -> Report:
    """Compares all that was measured; draws nothing yet."""
    sections = []
    for experiment in catalogue.experiments.values():
        lines = results.lines(experiment.name)
        measured = Measured(experiment, lines, results.deadlocked(experiment.name), results.uses(experiment.name))
        sections.append(
            Section(
                experiment,
                deviations=verdicts.deviations(catalogue, experiment, measured, setting.quick),
                verdicts=verdicts.verdicts(catalogue, experiment, measured, setting.quick),
                strangers=measured.strangers,
                measured=bool(measured.series),
                remarks=[verdicts.with_values(each, measured) for each in experiment.remarks],
                notes=list(dict.fromkeys(line["note"] for line in lines if line.get("note"))),
            )
        )
    chip = chips.load(setting.chip)
    table = sensitivity_table.kept(setting.quick) if setting.chip == chips.DEFAULT else None
    kept = statistics.saved(setting, results.builds())
    return Report(_about(results, setting), sections, chip.parameters, table, kept)


def write(report: Report, results: store.Results, where: Path) -> Path:
    """Draws the figures as PNG and SVG and writes the page; returns its path."""
    files.folder(where)
    for section in report.sections:
        measured = Measured(section.experiment, results.lines(section.experiment.name))
        section.pictures = _pictures(section.experiment, measured, where)
    path = where / "index.html"
    files.write(path, page.render(report))
    return path


def _pictures(experiment: Experiment, measured: Measured, where: Path) -> list[Picture]:
    from tombolo.scc import draw  # matplotlib is slow to load and only needed here

    made = []
    for figure in experiment.figures:
        stem, narrow = where / figure.name, where / f"{figure.name}-narrow"
        if not draw.is_measured(figure, measured):
            for each in (stem, narrow):
                draw.remove(each)
            continue
        draw.save(draw.picture(experiment, figure, measured), stem)
        draw.save(draw.picture(experiment, figure, measured, narrow=True), narrow)
        rows = figure_data.rows(experiment, figure, measured)
        texts = figure_data.as_csv(rows), figure_data.as_json(figure, rows)
        for suffix, text in zip((".csv", ".json"), texts, strict=True):
            files.write(stem.with_suffix(suffix), text)
        made.append(Picture(figure, stem.with_suffix(".svg"), narrow.with_suffix(".svg"), *texts))
    return made


def _about(results: store.Results, setting: Setting) -> dict[str, str]:
    times = sorted(done.time for done in results.done.values())
    return {
        "points measured": str(len(results.done)),
        "first and last": f"{times[0]} to {times[-1]}" if times else "none",
        "commits": ", ".join(sorted(results.commits())) or "none",
        "builds of the program": ", ".join(sorted(results.builds())) or "none",
        "set of points": "quick" if setting.quick else "full",
        "seed": str(setting.seed),
        "chip": setting.chip,
        "digests of chips": "; ".join(
            f"{name}: {', '.join(sorted(digests))}" for name, digests in sorted(results.chips().items())
        )
        or "none",
    }


def enriched(catalogue: Catalogue, experiment: str, lines: list[dict]) -> list[dict]:
    """The measured lines, with the paper's number and the deviation where there is one."""
    made = catalogue.experiments.get(experiment)
    if made is None:
        return lines
    told = [
        each
        for each in verdicts.deviations(catalogue, made, Measured(made, lines))
        if each.part == "value" and each.share is not None
    ]
    return [{**line, **_beside(line, told)} for line in lines]


def _beside(line: dict, deviations: list[verdicts.Deviation]) -> dict:
    for each in deviations:
        if each.number.series == line["series"] and same(each.number.x, line["x"]):
            return {
                "paper": each.paper,
                "deviation": each.share,
                "exact": each.number.exact,
                "source": each.number.source,
            }
    return {}
