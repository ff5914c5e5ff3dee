# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench`: our micro-benchmark and our lock schemes against the stock MPIs, in one run."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from tombolo import compile, host, libraries, load, measure, mpis, options, paths, records, settings
from tombolo import starvation as starving
from tombolo.commands import bench_curves, bench_dsm, bench_svp
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.measure import Campaign, Contestant, Sample, Target
from tombolo.mpis import Mpi

STOCK_MPIS = f"This stock MPI is measured, or several are: {options.MPIS}. [default: all that are here]"

app = typer.Typer(help="Measurements against the stock MPIs of this host.", no_args_is_help=True)


app.command("curves")(bench_curves.bench_curves)
app.command("dsm")(bench_dsm.dsm)
app.command("svp")(bench_svp.svp)


@app.callback()
def bench() -> None:
    """Measurements against the stock MPIs of this host."""


@app.command("one-sided")
def one_sided(
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n", help="The rows of so many processes are measured; there are some of 2 and of 8. [default: 2]", min=2
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Only rows are measured whose names match this regular expression.")
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(help=f"Tombolo runs on this machine, or on several: {options.MACHINES}. [default: coherent]"),
    ] = None,
    mpi: Annotated[list[str] | None, typer.Option(help=STOCK_MPIS)] = None,
    under: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Tombolo runs in front of this MPI, or of several: {options.MPIS}. [default: those stock MPIs that "
            "are not the distribution's]"
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Each contestant has its turn so often.", min=1)] = 3,
    samples: Annotated[int, typer.Option(help="Each rank takes at most so many samples for a row.", min=1)] = 10000,
    budget: Annotated[
        float | None,
        typer.Option(help="A row takes about so many seconds. [default: 0.5, with --loaded 2]", metavar="SECONDS"),
    ] = None,
    loaded: Annotated[
        bool,
        typer.Option(
            help="Busy loops run beside, twice as many as processors, and operations per second are told as well."
        ),
    ] = False,
    batch: Annotated[int, typer.Option(help="A sample has so many operations, to be finer than the clock.", min=1)] = 1,
    every: Annotated[
        bool,
        typer.Option("--all", help="All rows are measured: of 2 and of 8 ranks, each without and beside busy loops."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            help="The status is 1 where a row is behind a stock MPI, or misses its target or its aim for a memcpy."
        ),
    ] = False,
    former: options.FormerRanks = None,
) -> None:
    """Medians of one-sided operations.

    Stock MPIs and Tombolo are measured in turn, rounds times.
    """
    if every:
        options.check_unused({"-n": ranks, "--loaded": loaded}, "--all measures every number and both hosts")
    ranks = ranks or 2
    options.check_pattern("--rows", rows)
    options.check_seconds("--budget", budget)
    machines = machine or ["coherent"]
    for name in machines:
        settings.check_machine(name)
    stock = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    hosts = [mpis.need(key) for key in under] if under else fronted(stock)
    if not any(rows_of(count, machines, rows, beside, batch) for count, beside in conditions(ranks, loaded, every)):
        raise UserError(f"no row for {ranks} ranks on {', '.join(machines)} matches")
    compile.sources("benchmarks")
    libraries.refresh("native")
    for each in hosts:
        libraries.need(each.kind)
    plan = Plan(stock, hosts, machines, rounds, samples, budget, batch)
    behind = []
    for count, beside in conditions(ranks, loaded, every):
        if wanted := rows_of(count, machines, rows, beside, batch):
            behind += measure_rows(plan, count, beside, wanted)
    if strict and behind:
        raise typer.Exit(1)


def rows_of(ranks: int, machines: list[str], pattern: str | None, loaded: bool, batch: int) -> list[Target]:
    """Those to measure; the other programs have no batches."""
    wanted = measure.pick(measure.targets(), ranks, machines, pattern, loaded)
    return [row for row in wanted if batch == 1 or row.program == "one_sided"]


def conditions(ranks: int, loaded: bool, every: bool) -> list[tuple[int, bool]]:
    """Numbers of ranks, and whether busy loops run beside them."""
    if not every:
        return [(ranks, loaded)]
    numbers = sorted({row.ranks for row in measure.targets()})
    return [(number, beside) for beside in (False, True) for number in numbers]


@dataclass(frozen=True)
class Plan:
    """The options that all rows have in common."""

    stock: list[Mpi]
    hosts: list[Mpi]  # that Tombolo runs in front of
    machines: list[str]
    rounds: int
    samples: int
    budget: float | None
    batch: int

    def entries(self, ranks: int) -> list[Contestant]:
        found = self.stock + [each for each in self.hosts if each not in self.stock]
        return [
            c
            for c in measure.contestants(found, self.hosts, self.machines, ranks)
            if not c.stock or c.mpi in self.stock
        ]

    def options(self, ranks: int, loaded: bool) -> list[str]:
        seconds = self.budget or (2 if loaded else 0.5)
        words = ["--samples", str(self.samples), "--budget-s", str(seconds)]
        if ranks <= host.cores():
            words.append("--pin")
        if loaded:
            words.append("--whole-budget")
        if self.batch > 1:
            words += ["--batch", str(self.batch)]
        return words


def measure_rows(plan: Plan, ranks: int, loaded: bool, wanted: list[Target]) -> list[str]:
    """Measures, shows and keeps the rows; returns a sentence for each shortfall."""
    entries = plan.entries(ranks)
    loops = load.usual() if loaded else 0
    name = f"one-sided-{ranks}"
    writer = records.Writer(name, ranks=ranks, rounds=plan.rounds, busy_loops=loops)
    programs = {row.name: row.program for row in wanted}
    campaign = Campaign(ranks, plan.options(ranks, loaded), writer.write, console.print, programs)
    ids = list(dict.fromkeys(row.id for row in wanted))
    with load.busy_loops(loops) if loops else nullcontext():
        measure_in_turn(campaign, ids, entries, plan.rounds)
    console.print(table(campaign, wanted, entries, ranks, plan.rounds))
    console.print(ratios(campaign, wanted, entries))
    behind = [line for row in wanted for line in shortfalls(campaign, row, entries)]
    for line in behind:
        paragraph(line, style="yellow")
    console.print(f"records: {paths.shown(writer.path)}")
    plots(campaign, wanted, entries, writer.path, f"{ranks} ranks on {host.cores()} processors")
    return behind


def fronted(stock: list[Mpi]) -> list[Mpi]:
    """Those of which Tombolo in front is measured unless told; the distribution's, which are older
    ones of the same, only where there are no others."""
    return [mpi for mpi in stock if mpi.key == mpi.kind] or stock


def measure_in_turn(campaign: Campaign, ids: list[tuple[str, str]], entries: list[Contestant], rounds: int) -> None:
    """Each row of all contestants within seconds: the host's pace may change between minutes."""
    for number in range(1, rounds + 1):
        for name, flavor in ids:
            console.print(f"round {number}: {name} ({flavor})")
            for contestant in entries:
                campaign.round(number, contestant, [(name, flavor)])


@app.command("starvation")
def starvation(
    ranks: Annotated[int, typer.Option("-n", help="Of so many processes one writes, and all others read.", min=2)] = 8,
    machine: Annotated[str, typer.Option(help=f"Tombolo runs on this machine: {options.MACHINES}.")] = "coherent",
    mpi: Annotated[list[str] | None, typer.Option(help=STOCK_MPIS)] = None,
    under: Annotated[str, typer.Option(help=f"Tombolo runs in front of this MPI: {options.MPIS}.")] = "mpich",
    stock: Annotated[bool, typer.Option(help="The stock MPIs are measured as well.")] = True,
    rounds: Annotated[int, typer.Option(help="The writer asks for the lock so often.", min=1)] = 200,
    samples: Annotated[int, typer.Option(help="Each rank takes so many samples for the quartiles.", min=1)] = 1000,
    budget: Annotated[
        float, typer.Option(help="Each part of a run takes at most so many seconds.", metavar="SECONDS")
    ] = 5,
    former: options.FormerRanks = None,
) -> None:
    """Waits for locks, by every lock scheme.

    Does a writer get in among readers, and how evenly are locks served?
    """
    if not stock:
        options.check_unused({"--mpi": mpi}, "with --no-stock no stock MPI is measured")
    options.check_seconds("--budget", budget)
    options.check_processes(ranks)
    settings.check_machine(machine)
    compile.sources("benchmarks")
    front = mpis.need(under)
    libraries.refresh("native")
    libraries.need(front.kind)
    stocks = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    writer = records.Writer(f"starvation-{ranks}", ranks=ranks, machine=machine)
    entries = starving.contestants(front, stocks if stock else [])
    for entry in entries:
        console.print(entry.label)
        words = ["--rounds", str(rounds), "--samples", str(samples)]
        starving.run(entry, ranks, machine, words, budget)
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


# --- The table ------------------------------------------------------------------------------------


def table(campaign: Campaign, rows: list[Target], entries: list[Contestant], ranks: int, rounds: int) -> Table:
    """A line for each row: the times of all."""
    title = f"{ranks} ranks, microseconds: median of {rounds} rounds (lowest q1 to highest q3)"
    result = Table(title=title, title_justify="left")
    result.add_column("row")
    for entry in entries:
        result.add_column(entry.label, justify="right")
    ours = [entry for entry in entries if not entry.stock]
    result.add_column("target", justify="right")
    result.add_column("limit")
    for row in rows:
        cells = [cell_text(campaign, entry, row) for entry in entries]
        result.add_row(row.title, *cells, target_text(campaign, row, ours), row.limit)
    return result


def ratios(campaign: Campaign, rows: list[Target], entries: list[Contestant]) -> Table:
    """A line for each row: each of ours beside the best stock MPI, and beside its own."""
    result = Table(title="times as quick as the best stock MPI, and as its own", title_justify="left")
    result.add_column("row")
    ours = [entry for entry in entries if not entry.stock]
    for entry in ours:
        result.add_column(entry.label, justify="right")
    for row in rows:
        result.add_row(row.title, *(ratio_text(campaign, row, each, entries) for each in ours))
    return result


def cell_text(campaign: Campaign, entry: Contestant, row: Target) -> str:
    if (entry, row.id) in campaign.broken:
        return "breaks"
    cell = campaign.cells.get((entry, row.id))
    if cell is None:
        return ""
    text = f"{number(cell.median)} ({number(cell.low)}-{number(cell.high)})"
    if cell.by_memcpy is not None:
        text += f"\n{cell.by_memcpy:.2f} memcpy"
    if row.loaded and cell.per_s is not None:
        text += f"\n{cell.per_s:,.0f} per s"
    return text


def ratio_text(campaign: Campaign, row: Target, ours: Contestant, entries: list[Contestant]) -> str:
    """How many times better ours is than the best stock MPI and than its own, in time; below, on a
    host with other work, in operations per second."""
    if ours.machine != row.machine:
        return ""
    groups = opponents(ours, entries).values()
    lines = [[ratio(campaign, row, ours, group) for group in groups]]
    if row.loaded:
        lines.append([ratio(campaign, row, ours, group, pace) for group in groups])
    return "\n".join(", ".join(marked(value) for value in line) for line in lines)


def marked(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 1:
        return f"{value:.2f}"
    return f"[red]{value:.2f}[/]" if value >= 0.1 else f"[red]{value:.1g}[/]"


def target_text(campaign: Campaign, row: Target, ours: list[Contestant]) -> str:
    """Marked where one of ours misses it."""
    if row.target is None:
        return ""
    cells = [campaign.cells.get((e, row.id)) for e in ours if e.machine == row.machine]
    missed = any(cell and cell.median > row.target for cell in cells)
    return f"[yellow]{number(row.target)}[/]" if missed else number(row.target)


# --- Comparing ------------------------------------------------------------------------------------


def opponents(ours: Contestant, entries: list[Contestant]) -> dict[str, list[Contestant]]:
    """The stock MPIs that ours is compared with: all, and the one in front of which it runs."""
    stock = [entry for entry in entries if entry.stock]
    return {
        "the best stock MPI": stock,
        "its own stock MPI": [entry for entry in stock if entry.mpi == ours.mpi],
    }


def duration(sample: Sample) -> float | None:
    return sample.median


def pace(sample: Sample) -> float | None:
    """Like a time: less is better."""
    return 1 / sample.per_s if sample.per_s else None


def ratio(
    campaign: Campaign,
    row: Target,
    ours: Contestant,
    stock: list[Contestant],
    value: Callable[[Sample], float | None] = duration,
) -> float | None:
    """How many times as long as ours the best of these takes: the median over the rounds.

    Only values of the same round are compared: where the host's pace changes between rounds, the
    medians over all rounds may come from different paces.
    """

    def by_round(entry: Contestant) -> list[float | None]:
        cell = campaign.cells.get((entry, row.id))
        return [value(sample) for sample in cell.rounds] if cell else []

    best_of_round = [
        min((v for v in values if v is not None), default=None) for values in zip_longest(*map(by_round, stock))
    ]
    ratios = [
        theirs / mine
        for theirs, mine in zip(best_of_round, by_round(ours), strict=False)
        if theirs is not None and mine is not None
    ]
    return median(ratios) if ratios else None


def shortfalls(campaign: Campaign, row: Target, entries: list[Contestant]) -> list[str]:
    """Sentences where one of ours is behind a stock MPI, or misses its target or its aim for a
    memcpy."""
    return [
        line for ours in entries if ours.machine == row.machine for line in shortfalls_of(campaign, row, ours, entries)
    ]


def shortfalls_of(campaign: Campaign, row: Target, ours: Contestant, entries: list[Contestant]) -> list[str]:
    name = f"{row.title}, {ours.label}"
    cell = campaign.cells.get((ours, row.id))
    if cell is None:
        measured = any((e, row.id) in campaign.cells for e in entries if e.stock)
        return [f"{name}: no measurement"] if measured else []
    lines = []
    competing = opponents(ours, entries) if row.machine == "coherent" else {}  # no MPI serves others
    for whom, group in competing.items():
        times = ratio(campaign, row, ours, group)
        if times is not None and times < 1:
            lines.append(f"{name}: behind {whom}, {number(cell.median)} to "
                         f"{number(best(campaign, row, group))}, ratio in the same round "
                         f"{times:.2f}{means(campaign, row, entries)}")  # fmt: skip
        rate = ratio(campaign, row, ours, group, pace) if row.loaded else None
        if rate is not None and rate < 1:
            lines.append(f"{name}: fewer in a second than {whom}, ratio in the same round {rate:.2f}")
    if row.target and cell.median > row.target:
        lines.append(f"{name}: {number(cell.median)}, the target is {number(row.target)}")
    if row.times_memcpy and cell.by_memcpy and cell.by_memcpy > row.times_memcpy:
        lines.append(f"{name}: {cell.by_memcpy:.2f} times a memcpy, the aim is {row.times_memcpy}")
    return lines


def best(campaign: Campaign, row: Target, entries: list[Contestant]) -> float:
    """The lowest median of those that were measured, of which there is one."""
    return min(cell.median for e in entries if (cell := campaign.cells.get((e, row.id))))


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


def plots(campaign: Campaign, rows: list[Target], entries: list[Contestant], path: Path, subtitle: str) -> None:
    """A PNG and an SVG beside the records."""
    from tombolo import plot  # matplotlib is slow to load and only needed here

    for suffix in (".png", ".svg"):
        out = path.with_suffix(suffix)
        plot.medians(campaign, rows, entries, out, subtitle)
        console.print(f"plot: {paths.shown(out)}")
