# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench one-sided`: our micro-benchmark against the stock MPIs, in one run."""

from typing import Annotated

import typer
from rich.table import Table

from tombolo import host, measure, mpis, natives, places, records
from tombolo.faults import Fault
from tombolo.launch import MACHINES
from tombolo.measure import Campaign, Contestant, Target
from tombolo.screen import console, paragraph

app = typer.Typer(help="Measurements against the stock MPIs of this host.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measurements against the stock MPIs of this host."""


@app.command("one-sided")
def one_sided(
    ranks: Annotated[int, typer.Option(help="Number of processes: 2 or 8 have targets.")] = 2,
    rows: Annotated[str | None, typer.Option(help="Regular expression on row names.")] = None,
    machine: Annotated[
        list[str] | None, typer.Option(help="Repeatable [default: coherent]")
    ] = None,
    mpi: Annotated[
        list[str] | None, typer.Option(help="Stock MPIs; repeatable [default: all found]")
    ] = None,
    under: Annotated[
        list[str] | None, typer.Option(help="MPIs that Tombolo runs in front of [default: mpich]")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often each contestant has its turn.")] = 3,
    samples: Annotated[int, typer.Option(help="Of each rank and row, at most.")] = 10000,
    budget: Annotated[float, typer.Option(help="Seconds for a row, about.")] = 0.5,
    strict: Annotated[bool, typer.Option(help="Fail where a row is behind the best stock MPI.")] = False,
) -> None:
    """Medians of one-sided operations: stock MPIs and Tombolo in turn, rounds times."""
    machines = machine or ["coherent"]
    for name in machines:
        if name not in MACHINES:
            raise Fault(f"'{name}' is not a machine; choose of {', '.join(MACHINES)}")
    hosts = [mpis.need(key) for key in under] if under else [mpis.need("mpich")]
    stock = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    for each in hosts:
        natives.need(each.kind)
    found = stock + [each for each in hosts if each not in stock]
    wanted = measure.pick(measure.targets(), ranks, machines, rows)
    if not wanted:
        raise Fault(f"no row for {ranks} ranks on {', '.join(machines)} matches")
    entries = [
        c
        for c in measure.contestants(found, hosts, machines, ranks)
        if not c.stock or c.mpi in stock
    ]
    options = ["--samples", str(samples), "--budget-s", str(budget)]
    if ranks <= host.cores():
        options.append("--pin")
    writer = records.Writer(f"one-sided-{ranks}", ranks=ranks, rounds=rounds)
    campaign = Campaign(ranks, options, writer.write, console.print)
    ids = list(dict.fromkeys(row.id for row in wanted))
    for number in range(1, rounds + 1):
        for contestant in entries:
            console.print(f"round {number}: {contestant.label}")
            campaign.round(number, contestant, ids)
    console.print(table(campaign, wanted, entries, ranks, rounds))
    behind = [line for row in wanted if (line := shortfall(campaign, row, entries))]
    for line in behind:
        paragraph(line, style="yellow")
    console.print(f"records: {places.shown(writer.path)}")
    plots(campaign, wanted, entries, writer.path, f"{ranks} ranks on {host.cores()} processors")
    if strict and behind:
        raise typer.Exit(1)


def table(
    campaign: Campaign, rows: list[Target], entries: list[Contestant], ranks: int, rounds: int
) -> Table:
    """A line for each row; the ratio is of the best stock MPI to the best of ours."""
    title = f"{ranks} ranks, microseconds: median of {rounds} rounds (lowest q1 to highest q3)"
    result = Table(title=title, title_justify="left")
    result.add_column("row")
    for entry in entries:
        result.add_column(entry.label, justify="right")
    for heading in ("best stock / ours", "target"):
        result.add_column(heading, justify="right")
    result.add_column("limit")
    for row in rows:
        cells = [cell_text(campaign, entry, row) for entry in entries]
        stock, ours = best(campaign, row, entries)
        ratio = f"{stock / ours:.2f}" if stock and ours else ""
        if stock and ours and stock < ours:
            ratio = f"[red]{ratio}[/]"
        target = "" if row.target is None else number(row.target)
        if row.target is not None and ours is not None and ours > row.target:
            target = f"[yellow]{target}[/]"
        result.add_row(row.title, *cells, ratio, target, row.limit)
    return result


def cell_text(campaign: Campaign, entry: Contestant, row: Target) -> str:
    if (entry, row.id) in campaign.broken:
        return "breaks"
    cell = campaign.cells.get((entry, row.id))
    if cell is None:
        return ""
    return f"{number(cell.median)} ({number(cell.low)}-{number(cell.high)})"


def best(
    campaign: Campaign, row: Target, entries: list[Contestant]
) -> tuple[float | None, float | None]:
    """The lowest median of a stock MPI and of Tombolo on the row's machine."""
    medians: dict[bool, list[float]] = {True: [], False: []}
    for entry in entries:
        if (cell := campaign.cells.get((entry, row.id))) and entry.machine in (None, row.machine):
            medians[entry.stock].append(cell.median)
    return min(medians[True], default=None), min(medians[False], default=None)


def shortfall(campaign: Campaign, row: Target, entries: list[Contestant]) -> str | None:
    """A sentence where we are behind a stock MPI; it does not apply where no MPI competes."""
    stock, ours = best(campaign, row, entries)
    if row.machine != "coherent" or stock is None:
        return None
    if ours is None:
        return f"{row.title}: no measurement of ours"
    if ours > stock:
        return f"{row.title}: behind the best stock MPI, {number(ours)} to {number(stock)}"
    return None


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}"


def plots(campaign, rows: list[Target], entries: list[Contestant], path, subtitle: str) -> None:
    """A PNG and an SVG beside the records."""
    from tombolo import plot  # matplotlib is slow to load and only needed here

    for suffix in (".png", ".svg"):
        out = path.with_suffix(suffix)
        plot.medians(campaign, rows, entries, out, subtitle)
        console.print(f"plot: {places.shown(out)}")
