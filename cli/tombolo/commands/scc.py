# SPDX-License-Identifier: Apache-2.0
"""`tombolo scc`: the papers' experiments on the simulated SCC, and a report beside the papers."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tombolo import hints, libraries, options, paths, records
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.scc import (
    baseline,
    campaign,
    catalogue,
    chips,
    kept_values,
    native,
    report,
    sensitivity,
    sensitivity_table,
    statistics,
    store,
    totals,
)  # fmt: skip
from tombolo.scc.native import Setting
from tombolo.scc.page import Report, Section, percent
from tombolo.scc.verdicts import Deviation, Verdict

app = typer.Typer(help="The papers' experiments on the simulated SCC.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="The set of points is a small one.")]
Chip = Annotated[str, typer.Option(help="The chip is called so, or is described by this TOML file.")]
Seed = Annotated[
    int, typer.Option(help="The programs draw their random choices from this number.", min=0, max=options.LARGEST)
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="So many processes run at once. [default: one for each processor]")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="All points are measured again.")]
All = Annotated[bool, typer.Option("--all", help="The table has every number of the papers.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="The status is 1 where a claim does not hold or a reason is missing.")
]
STYLES = {True: "green", False: "red", None: "dim"}


@app.callback()
def scc() -> None:
    """The papers' experiments on the simulated SCC, and a report beside the papers."""


@app.command("list")
def list_experiments() -> None:
    """List the experiments, and their places in the papers."""
    known = catalogue.load().experiments
    program = libraries.find_program(native.NAME)
    offered = native.offers(program) if program else {}
    table = Table(title="Experiments", title_justify="left")
    for heading in ("experiment", "what", "in the papers"):
        table.add_column(heading, overflow="fold")
    for heading in ("points", "quick"):
        table.add_column(heading, justify="right")
    for name in dict.fromkeys([*known, *offered]):
        offer, made = offered.get(name), known.get(name)
        table.add_row(
            name,
            _title(made) if made else offered[name].title,
            made.papers() if made else "",
            str(offer.points) if offer else "",
            str(offer.quick_points) if offer else "",
        )
    console.print(table)
    if program is None:
        paragraph(f"{native.NAME}, which runs them, is not there: {libraries.program_hint(native.NAME)}")


def _title(experiment: catalogue.Experiment) -> str:
    return f"{experiment.title} (long: run by name only)" if experiment.long else experiment.title


@app.command("run")
def run(
    experiments: Annotated[list[str], typer.Argument(metavar="EXPERIMENT...")],
    quick: Quick = False,
    chip: Chip = chips.DEFAULT,
    lines: Annotated[
        Path | None,
        typer.Option("--json", help="The values are written to this file beside the papers'; - is standard output."),
    ] = None,
    seed: Seed = 1,
    jobs: Jobs = None,
    fresh: Fresh = False,
) -> None:
    """Measure the missing points of experiments."""
    records.check_lines(lines)
    ended = campaign.run(experiments, Setting(quick, seed, chip), jobs, fresh)
    results = ended.store.load()
    known = catalogue.load()
    names = list(dict.fromkeys(experiments))
    if lines:
        records.write_lines([v for n in names for v in report.enriched(known, n, results.lines(n))], lines)
    if str(lines) != "-":
        made = report.gather(known, results, Setting(quick, seed, chip))
        _show([s for s in made.sections if s.experiment.name in names], everything=False)
        _say_ended(ended)
    _fail_with(ended)


@app.command("figures")
def figures(
    quick: Quick = False,
    chip: Chip = chips.DEFAULT,
    seed: Seed = 1,
    jobs: Jobs = None,
    fresh: Fresh = False,
    everything: All = False,
) -> None:
    """Measure all experiments that are not long, and report."""
    setting = Setting(quick, seed, chip)
    ended = campaign.run([], setting, jobs, fresh)
    _say_ended(ended)
    _report(setting, ended.store.load(), everything)
    _fail_with(ended)


@app.command("report")
def report_command(
    quick: Quick = False,
    chip: Chip = chips.DEFAULT,
    seed: Seed = 1,
    everything: All = False,
    strict: Strict = False,
) -> None:
    """Draw earlier measurements, and compare with the papers."""
    setting = Setting(quick, seed, chip)
    made = _report(setting, _measured(setting), everything)
    if strict and _wanting(made):
        raise typer.Exit(1)


@app.command("baseline")
def baseline_command(
    quick: Quick = False,
    write: Annotated[bool, typer.Option("--write", help="The verdicts are kept as the ones to compare with.")] = False,
    other_builds: Annotated[
        bool, typer.Option("--other-builds", help="Points that only other builds have measured count as well.")
    ] = False,
) -> None:
    """Compare earlier verdicts with those in the source tree."""
    setting = Setting(quick)
    file = baseline.path(setting)
    known = catalogue.load()
    results = _of_this_build(setting, other_builds)
    now = baseline.judgements(report.gather(known, results, setting))
    before = {} if write and not file.exists() else baseline.load(file)
    offered = campaign.with_points(setting)
    there = [name for name in known.experiments if name in offered]
    if same := baseline.unmeasured(before, now, there):
        paragraph(f"not measured, and left as they are: {', '.join(same)}", style="yellow")
    if write:
        baseline.save(baseline.merged(before, now, there), file)
        paragraph(f"{len(now)} verdicts: {paths.shown(file)}")
    if not quick:
        _compare_values(kept_values.of(known, results), kept_values.path(file), there if write else None)
    if write:
        return
    if unknown := baseline.without(before, now):
        paragraph(f"no verdicts of {', '.join(unknown)} were kept yet", style="yellow")
    changes = baseline.changes(before, now, there)
    for sentence in changes:
        paragraph(sentence)
    if changes:
        again = hints.BASELINE_QUICK if quick else hints.BASELINE
        raise UserError(f"{len(changes)} verdicts differ from {paths.shown(file)}; {again}")
    paragraph(f"{len(now)} verdicts as in {paths.shown(file)}")


def _compare_values(now: kept_values.Values, file: Path, write_of: list[str] | None) -> None:
    """With those in the source tree; or keeps them, of these experiments. Another value alone is no
    mistake: verdicts tell whether it matters."""
    before = kept_values.load(file) if file.exists() else {}
    if write_of is not None:
        kept_values.save(kept_values.merged(before, now, write_of), file)
        paragraph(f"{len(now)} values: {paths.shown(file)}")
    elif changed := kept_values.others(before, now):
        some = "; ".join(" ".join(place) for place in changed[:3])
        paragraph(f"{len(changed)} of {len(now)} values differ from {paths.shown(file)}: {some}, ...", style="yellow")
    else:
        paragraph(f"{len(now)} values as in {paths.shown(file)}")


@app.command("sensitivity")
def sensitivity_command(
    quick: Quick = False,
    variants: Annotated[
        list[str] | None, typer.Option("--variant", help="This variant is measured, or several are. [default: all]")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="The table is kept, and the report shows it.")] = False,
    jobs: Jobs = None,
) -> None:
    """Which verdicts flip with another parameter or seed.

    The parameters are those that were chosen.
    """
    setting = Setting(quick)
    known, before = catalogue.load(), _of_this_build(setting)
    found = sensitivity_table.Table(setting.mode, chips.load(chips.DEFAULT).digest)
    failures = []
    for variant in sensitivity.choose(variants or []):
        outcome, failed = sensitivity.measure(variant, known, quick, before, jobs)
        found.outcomes.append(outcome)
        failures += failed
        console.print(_flip_table(outcome))
    if failures:
        raise UserError("; ".join(campaign.grouped(failures)))
    if write:
        file = sensitivity_table.path(quick)
        kept = sensitivity_table.load(file) if file.exists() else None
        sensitivity_table.save(sensitivity.merged(kept, found), file)
        paragraph(f"{len(found.outcomes)} variants: {paths.shown(file)}")


def _flip_table(outcome: sensitivity_table.Outcome) -> Table:
    title = (
        f"{outcome.variant} ({outcome.change}): {len(outcome.flips)} of {outcome.judged} verdicts flip, "
        f"{outcome.points} points measured"
    )
    table = Table(title=title, title_justify="left")
    for heading in ("verdict of", "as it is", "varied"):
        table.add_column(heading, overflow="fold")
    for flip in outcome.flips:
        table.add_row(flip.name, f"{flip.word}, {flip.found}", f"{flip.varied_word}, {flip.varied_found}")
    return table


@app.command("statistics")
def statistics_command(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    points: Annotated[list[str], typer.Argument(metavar="POINT...")],
    quick: Quick = False,
    chip: Chip = chips.DEFAULT,
    seed: Seed = 1,
) -> None:
    """How busy each part of the chip was in a point.

    And how long requests waited there.
    """
    setting = Setting(quick, seed, chip)
    program = native.locate()
    folder = statistics.folder(setting, native.digest(program))
    for point in points:
        runs = statistics.measure(program, experiment, point, setting)
        console.print(_use_table(statistics.longest(runs)))
        at = statistics.save(runs, folder)
        paragraph(f"{paths.shown(at)}.json, .svg")


def _use_table(run: statistics.Run) -> Table:
    title = f"{run.experiment} {run.point}: {run.end_us:.1f} us"
    table = Table(title=title, title_justify="left")
    table.add_column("busiest of its kind")
    for heading in ("utilisation", "its mean wait", "mean wait of the kind"):
        table.add_column(heading, justify="right")
    for row in statistics.summary(run):
        table.add_row(*row)
    table.add_section()
    for text, share in statistics.of_cores(run):
        table.add_row(text, share)
    return table


def _measured(setting: Setting) -> store.Results:
    """The newest results of a setting; a UserError if there are none."""
    results = store.newest(setting)
    if not results.done:
        advice = hints.MEASURE_QUICK if setting.quick else hints.MEASURE
        raise UserError(f"{paths.shown(store.folder())} holds nothing of this setting; {advice}")
    return results


def _of_this_build(setting: Setting, others_too: bool = False) -> store.Results:
    """The results of the program as it is now. A UserError names points that only other builds have
    measured, unless they are wanted; those that the program has no more do not count."""
    newest, program = _measured(setting), native.locate()
    here = store.Store(program, setting).load()
    measured = newest.keys()
    planned = campaign.planned(program, {name for name, _ in measured}, setting)
    others = newest.only((measured & planned) - here.keys())
    if not others.keys():
        return here
    count = len(others.keys())
    points = "point is" if count == 1 else "points are"
    sentence = f"{count} {points} of other builds of {native.NAME}: {_some(others.keys())}"
    if not others_too:
        raise UserError(f"{sentence}; {hints.MEASURE_QUICK if setting.quick else hints.MEASURE}")
    paragraph(sentence, style="yellow")
    return store.Results({**others.done, **here.done}, {**others.deadlocks, **here.deadlocks})


def _some(keys: set[store.Key]) -> str:
    """The number of each experiment's."""
    counts = Counter(experiment for experiment, _ in sorted(keys))
    return ", ".join(f"{count} of {experiment}" for experiment, count in counts.items())


def _report(setting: Setting, results: store.Results, everything: bool) -> Report:
    made = report.gather(catalogue.load(), results, setting)
    _show(made.sections, everything)
    changed = sorted(name for name, digests in results.chips().items() if len(digests) > 1)
    builds = len(results.builds())
    if builds > 1 or len(results.commits()) > 1 or changed:
        of_builds = f"{builds} builds of the program, of " if builds > 1 else ""
        of_chips = f" and of changed parameters of {', '.join(changed)}" if changed else ""
        paragraph(
            f"the values are of {of_builds}{len(results.commits())} commits{of_chips}; {hints.MEASURE_AGAIN}",
            style="yellow",
        )
    page = report.write(made, results, report.folder(setting))
    paragraph(f"report: {paths.shown(page)}")
    return made


def _show(sections: list[Section], everything: bool) -> None:
    for section in sections:
        for sentence in section.strangers:
            paragraph(f"left out: {sentence}", style="yellow")
    reasons: list[str] = []
    verdicts = [each for section in sections for each in section.verdicts]
    deviations = [each for section in sections for each in section.deviations]
    if any(section.deviations for section in sections):
        console.print(_deviation_table(sections, everything, reasons))
    if any(section.verdicts for section in sections):
        console.print(_claim_table(sections, reasons))
    for number, reason in enumerate(reasons, 1):
        paragraph(f"({number}) {reason}")
    if verdicts or deviations:
        console.print(_total_table(verdicts, deviations))
        paragraph(totals.headline(verdicts, deviations))


def _total_table(verdicts: list[Verdict], deviations: list[Deviation]) -> Table:
    table = Table(title="By evidence", title_justify="left")
    table.add_column("evidence")
    for heading in ("claims held", "not held", "open", "numbers met", "not met", "open"):
        table.add_column(heading, justify="right")
    pairs = zip(totals.of_claims(verdicts), totals.of_numbers(deviations), strict=True)
    for of_claims, of_numbers in pairs:
        counts = [n for t in (of_claims, of_numbers) for n in (t.held, t.failed, t.open)]
        table.add_row(of_claims.standing, *map(str, counts))
    return table


def _deviation_table(sections: list[Section], everything: bool, reasons: list[str]) -> Table:
    """The papers' numbers; where they are many, a summary and the bad ones, unless all are wanted.

    Reasons join the list and are named by their number there.
    """
    table = Table(title="The papers' numbers beside ours", title_justify="left")
    for heading in ("experiment", "series", "x"):
        table.add_column(heading)
    for heading in ("paper", "ours", "deviation"):
        table.add_column(heading, justify="right")
    for heading in ("", "reason"):
        table.add_column(heading, overflow="fold")
    for section in sections:
        shown = section.deviations
        if section.experiment.many_numbers and not everything:
            shown = [each for each in shown if each.good is False]
            table.add_row(section.experiment.name, section.summary)
        for each in shown:
            _deviation_row(table, each, reasons)
        table.add_section()
    return table


def _number_of(reason: str, reasons: list[str]) -> str:
    """The number of a reason in the list, which it joins if need be; empty for none."""
    if not reason:
        return ""
    if reason not in reasons:
        reasons.append(reason)
    return f"({reasons.index(reason) + 1})"


def _deviation_row(table: Table, each: Deviation, reasons: list[str]) -> None:
    name = each.number.series + ("" if each.part == "value" else f", {each.part}")
    table.add_row(
        each.experiment,
        name,
        str(each.number.x),
        f"{each.paper:g}",
        "" if each.ours is None else f"{each.ours:.4g} {each.unit}",
        f"[{STYLES[each.good]}]{percent(each.share)}[/]",
        "" if each.number.standing == "exact" else each.number.standing,
        _number_of(each.reason, reasons),
    )


def _claim_table(sections: list[Section], reasons: list[str]) -> Table:
    table = Table(title="The papers' claims", title_justify="left")
    for heading in ("experiment", "claim", "wanted", "found", "", "evidence", "reason"):
        table.add_column(heading, overflow="fold")
    for section in sections:
        for each in section.verdicts:
            reason = _number_of(each.reason, reasons) if each.held is False else ""
            table.add_row(
                each.experiment, each.claim.name, each.wanted, each.found, _word(each),
                each.claim.standing, reason,
            )  # fmt: skip
    return table


def _word(verdict: Verdict) -> str:
    return f"[{STYLES[verdict.held]}]{verdict.word}[/]"


def _wanting(made: Report) -> bool:
    """Whether a claim failed, or a number deviates too far without a reason."""
    claims = any(each.held is False for s in made.sections for each in s.verdicts)
    return claims or any(each.good is False and not each.reason for s in made.sections for each in s.deviations)


def _say_ended(ended: campaign.Ended) -> None:
    where = paths.shown(ended.store.path)
    paragraph(f"{ended.measured} points measured, {ended.there} were there: {where}")


def _fail_with(ended: campaign.Ended) -> None:
    if not ended.failures:
        return
    for sentence in campaign.grouped(ended.failures):
        print(f"tombolo: {sentence}", file=sys.stderr)
    print(
        f"tombolo: {len(ended.failures)} points failed; to try them again: {campaign.again()}",
        file=sys.stderr,
    )
    raise typer.Exit(1)
