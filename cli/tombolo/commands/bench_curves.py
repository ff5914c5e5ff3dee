# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench curves`: how operations scale with the number of ranks, beside the stock MPIs."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tombolo import compile, curves, files, host, libraries, measure, mpis, options, paths, records, settings
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.measure import Campaign, Entry

Entries = Sequence[Entry]
SUFFIXES = (".png", ".svg")


def bench_curves(
    ranks: Annotated[
        list[int] | None,
        typer.Option(
            "-n", help="Jobs of so many processes are measured, or of several numbers. [default: 2 4 8 16]", min=2
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help=f"Only rows are measured whose names match this regular expression: {', '.join(curves.ROWS)}. "
            "[default: all]"
        ),
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help=f"Tombolo runs on this machine: {options.MACHINES}. [default: coherent]")
    ] = None,
    mpi: Annotated[
        list[str] | None,
        typer.Option(help=f"This stock MPI is measured, or several are: {options.MPIS}. [default: all that are here]"),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Each contestant has its turn so often. [default: 3]", min=1)
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="A row takes about so many seconds. [default: 0.3]", metavar="SECONDS")
    ] = None,
    kept: Annotated[
        Path | None,
        typer.Option(
            "--records",
            help="Nothing is measured; the records in this file, maybe of another host, are told and drawn.",
        ),
    ] = None,
    former: options.FormerRanks = None,
) -> None:
    """Mean times of operations by the number of ranks.

    Stock MPIs and Tombolo are measured in turn.
    """
    if kept is not None:
        of_measuring = {
            "-n": ranks, "--rows": rows, "--machine": machine, "--mpi": mpi, "--rounds": rounds,
            "--budget": budget,
        }  # fmt: skip
        options.check_unused(of_measuring, "with --records nothing is measured")
        if kept.suffix in SUFFIXES:
            raise UserError(f"{kept} ends as a picture that is drawn of its records: give it another name")
        campaigns, names, recorded, context = curves.kept(kept)
        tell(campaigns, names, recorded)
        draw(campaigns, names, recorded, paths.results() / kept.name, context["cores"])
        return
    machine, rounds, budget = machine or "coherent", rounds or 3, 0.3 if budget is None else budget
    options.check_seconds("--budget", budget)
    settings.check_machine(machine)
    numbers = sorted(set(ranks or [2, 4, 8, 16]))
    options.check_pattern("--rows", rows)
    names = [name for name in curves.ROWS if re.search(rows or "", name)]
    if not names:
        raise UserError(f"no row matches {rows}: {', '.join(curves.ROWS)}")
    options.check_processes(max(numbers))
    stock = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    hosts = [each for each in stock if each.key == each.kind] or stock
    compile.sources("benchmarks")
    libraries.refresh("native")
    for each in hosts:
        libraries.need(each.kind)
    writer = records.Writer("curves", ranks=numbers, rounds=rounds)
    entries = measure.contestants(stock, hosts, [machine], max(numbers))
    campaigns = {n: Campaign(n, arguments(n, budget), writer.write, console.print) for n in numbers}
    for number in range(1, rounds + 1):
        for count, campaign in campaigns.items():
            console.print(f"round {number}: {count} ranks")
            for entry in entries:
                campaign.round(number, entry, [(name, curves.FLAVOR) for name in names])
    tell(campaigns, names, entries)
    console.print(f"records: {paths.shown(writer.path)}")
    draw(campaigns, names, entries, writer.path, host.cores())


def tell(campaigns: dict[int, Campaign], names: list[str], entries: Entries) -> None:
    """The table, and a sentence for each row of ours that is behind or grows faster."""
    console.print(table(campaigns, names, entries))
    for name in names:
        for ours in (entry for entry in entries if not entry.stock):
            sentence = curves.faster_growing(campaigns, ours, entries, name)
            if sentence:
                paragraph(sentence, style="yellow")


def draw(campaigns: dict[int, Campaign], names: list[str], entries: Entries, beside: Path, cores: int) -> None:
    from tombolo import plot  # matplotlib is slow to load

    files.folder(beside.parent)
    for suffix in SUFFIXES:
        out = beside.with_suffix(suffix)
        plot.curves(campaigns, names, entries, out, f"{cores} processors")
        console.print(f"plot: {paths.shown(out)}")


def arguments(ranks: int, budget: float) -> list[str]:
    """As `bench one-sided`: ranks that have a processor each are bound to it."""
    pinned = ["--pin"] if ranks <= host.cores() else []
    return ["--samples", "10000", "--budget-s", str(budget), *pinned]


def table(campaigns: dict[int, Campaign], names: list[str], entries: Entries) -> Table:
    """A line for each row and contestant: the time for each number of ranks, and the growth."""
    result = Table(title="microseconds, mean of a typical round (least to most)", title_justify="left")
    result.add_column("row")
    result.add_column("MPI")
    for ranks in campaigns:
        result.add_column(f"{ranks} ranks", justify="right")
    result.add_column("growth", justify="right")
    for name in names:
        for entry in entries:
            curve = curves.curve(campaigns, entry, name)
            cells = [cell(campaigns[n], entry, name, curve.times.get(n)) for n in campaigns]
            growth = f"{curve.growth:.3g}" if curve.growth is not None else ""
            result.add_row(curves.ROWS[name], entry.label, *cells, growth)
    return result


def cell(campaign: Campaign, entry: Entry, name: str, time: float | None) -> str:
    if (entry, (name, curves.FLAVOR)) in campaign.broken:
        return "breaks"
    ends = curves.spread(campaign, entry, name)
    return f"{time:.3g} ({ends[0]:.3g}-{ends[1]:.3g})" if time is not None and ends else ""
