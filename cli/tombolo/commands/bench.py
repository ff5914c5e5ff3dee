# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench`: our micro-benchmark and our lock schemes against the stock MPIs, in one run."""

from itertools import zip_longest
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from tombolo import host, libraries, measure, mpis, paths, records, settings
from tombolo import starvation as starving
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.measure import Campaign, Contestant, Target

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
        settings.check_machine(name)
    hosts = [mpis.need(key) for key in under] if under else [mpis.need("mpich")]
    stock = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    for each in hosts:
        libraries.need(each.kind)
    found = stock + [each for each in hosts if each not in stock]
    wanted = measure.pick(measure.targets(), ranks, machines, rows)
    if not wanted:
        raise UserError(f"no row for {ranks} ranks on {', '.join(machines)} matches")
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
        for name, flavor in ids:
            console.print(f"round {number}: {name} ({flavor})")
            # One after the other within seconds, as the host's pace may change between minutes.
            for contestant in entries:
                campaign.round(number, contestant, [(name, flavor)])
    console.print(table(campaign, wanted, entries, ranks, rounds))
    behind = [line for row in wanted if (line := shortfall(campaign, row, entries))]
    for line in behind:
        paragraph(line, style="yellow")
    console.print(f"records: {paths.shown(writer.path)}")
    plots(campaign, wanted, entries, writer.path, f"{ranks} ranks on {host.cores()} processors")
    if strict and behind:
        raise typer.Exit(1)


@app.command("starvation")
def starvation(
    ranks: Annotated[int, typer.Option(help="One writer, and readers.", min=2)] = 8,
    machine: Annotated[str, typer.Option(help="Of docs/settings.md.")] = "coherent",
    mpi: Annotated[
        list[str] | None, typer.Option(help="Stock MPIs; repeatable [default: all found]")
    ] = None,
    under: Annotated[str, typer.Option(help="The MPI that Tombolo runs in front of.")] = "mpich",
    stock: Annotated[bool, typer.Option(help="Measure the stock MPIs as well.")] = True,
    rounds: Annotated[int, typer.Option(help="Requests of the writer.")] = 200,
    samples: Annotated[int, typer.Option(help="Of each rank, for the quartiles.")] = 1000,
    budget: Annotated[float, typer.Option(help="Seconds for each part of a run, at most.")] = 5,
) -> None:
    """Does a writer get in among readers, and how evenly are locks served? Every lock scheme."""
    settings.check_machine(machine)
    front = mpis.need(under)
    libraries.need(front.kind)
    stocks = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    writer = records.Writer(f"starvation-{ranks}", ranks=ranks, machine=machine)
    entries = starving.contestants(front, stocks if stock else [])
    for entry in entries:
        console.print(entry.label)
        options = ["--rounds", str(rounds), "--samples", str(samples)]
        starving.run(entry, ranks, machine, options, budget)
        if entry.failure:
            paragraph(f"{entry.label}: {entry.failure}", style="red")
        for row in entry.rows.values():
            writer.write({"kind": "sample", "contestant": entry.label, **row})
    console.print(starvation_table(entries, ranks, machine))
    paragraph(
        "Reader entries: how many readers entered between the writer's request and its entry; the "
        "time stamps may add one for each reader, and the time before the request is known a few."
    )
    console.print(f"records: {paths.shown(writer.path)}")
    if any(entry.failure for entry in entries if entry.locks):
        raise typer.Exit(1)


def starvation_table(entries: list[starving.Contestant], ranks: int, machine: str) -> Table:
    """The writer among readers, then quartiles of lock + unlock as in Table 2 of the paper."""
    title = f"{ranks - 1} readers in a loop and a writer, {machine}; then lock + unlock at random"
    result = Table(title=title, title_justify="left")
    result.add_column("locks")
    for heading in (
        "reader entries\nmedian, 99 %, most",
        "writer's wait, us\nmedian, most",
        "shared, us\nQ1, Q2, Q3 (IQR/Q2)",
        "half exclusive, us",
        "exclusive, us",
    ):
        result.add_column(heading, justify="right")
    for entry in entries:
        wait = entry.rows.get("writer_wait")
        result.add_row(
            entry.label,
            "" if wait is None else joined(wait, "entries_median", "entries_p99", "entries_max"),
            "" if wait is None else joined(wait, "median", "max"),
            *(quartiles(entry.rows.get(f"lock_{mix}")) for mix in ("shared", "mixed", "exclusive")),
        )
    return result


def joined(row: dict, *names: str) -> str:
    return ", ".join(f"{row[n]:,.0f}" if "entries" in n else number(row[n]) for n in names)


def quartiles(row: dict | None) -> str:
    if row is None:
        return ""
    return f"{joined(row, 'q1', 'median', 'q3')} ({row['iqr_by_median']:.2f})"


def table(
    campaign: Campaign, rows: list[Target], entries: list[Contestant], ranks: int, rounds: int
) -> Table:
    """A line for each row, with the ratio of the best stock MPI to ours."""
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
        _, ours = best(campaign, row, entries)
        times = ratio(campaign, row, entries)
        shown = "" if times is None else f"{times:.2f}"
        if times is not None and times < 1:
            shown = f"[red]{shown}[/]"
        target = "" if row.target is None else number(row.target)
        if row.target is not None and ours is not None and ours > row.target:
            target = f"[yellow]{target}[/]"
        result.add_row(row.title, *cells, shown, target, row.limit)
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


def ratio(campaign: Campaign, row: Target, entries: list[Contestant]) -> float | None:
    """How many times as long as ours the best stock MPI takes: the median over the rounds.

    Only values of the same round are compared: where the host's pace changes between rounds, the
    medians over all rounds may come from different paces.
    """
    rounds: dict[bool, list[list[float]]] = {True: [], False: []}
    for entry in entries:
        if (cell := campaign.cells.get((entry, row.id))) and entry.machine in (None, row.machine):
            rounds[entry.stock].append([sample.median for sample in cell.rounds])
    best_of_round = {
        stock: [min(v for v in values if v is not None) for values in zip_longest(*rounds[stock])]
        for stock in rounds
    }
    pairs = zip(best_of_round[True], best_of_round[False], strict=False)
    ratios = [stock / ours for stock, ours in pairs]
    return median(ratios) if ratios else None


def shortfall(campaign: Campaign, row: Target, entries: list[Contestant]) -> str | None:
    """A sentence where we are behind a stock MPI; it does not apply where no MPI competes."""
    stock, ours = best(campaign, row, entries)
    if row.machine != "coherent" or stock is None:
        return None
    if ours is None:
        return f"{row.title}: no measurement of ours"
    times = ratio(campaign, row, entries)
    if times is not None and times < 1:
        return (
            f"{row.title}: behind the best stock MPI, {number(ours)} to {number(stock)}, ratio in the "
            f"same round {times:.2f}" + means(campaign, row, entries)
        )
    return None


def means(campaign: Campaign, row: Target, entries: list[Contestant]) -> str:
    """Marks medians that hide two kinds of samples, of which some wait for a processor.

    A stock MPI that spins exchanges a message within a microsecond while both partners happen to
    run, and takes thousands of times as long while one waits for its turn.
    """
    cells = [(e, c) for e in entries if (c := campaign.cells.get((e, row.id)))]
    if not any(e.stock and c.two_kinds for e, c in cells):
        return ""
    return "; in the mean " + ", ".join(f"{number(c.mean)} ({e.label})" for e, c in cells)


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
        console.print(f"plot: {paths.shown(out)}")
