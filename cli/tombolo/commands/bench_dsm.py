# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench dsm`: kernels on virtual shared memory beside the same with Pthreads."""

import re
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tombolo import dsm_bench, libraries, options, paths, progress, records, settings
from tombolo.console import console, paragraph
from tombolo.dsm_bench import Contestant, Kernel, Measured, Spread
from tombolo.errors import UserError

MET = {True: "[green]{} met[/]", False: "[red]{} not met[/]", None: "{}"}


def dsm(
    quick: Annotated[
        bool, typer.Option("--quick", help="There is one round, with small sizes where these measure the same.")
    ] = False,
    lines: Annotated[
        Path | None,
        typer.Option("--json", help="A line for each result is written to this file; - is standard output."),
    ] = None,
    threads: Annotated[
        int, typer.Option("-n", help="Each program has so many threads.", min=1, max=options.MOST_PROCESSES)
    ] = 2,
    rounds: Annotated[
        int | None, typer.Option(help="Each contestant has its turn so often. [default: 3]", min=1)
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            help=f"The transport window is on this machine, or on several: {options.MACHINES}. [default: coherent]"
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Only programs are measured whose names match this regular expression.")
    ] = None,
    programs: Annotated[
        bool,
        typer.Option(
            "--programs",
            help="Programs of Pthreads are measured, unchanged and compiled by tombolo dsm cc (static, full, page).",
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Pthreads has two turns in each round, which shows the host's own spread.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="The transport window has a second turn in each round, with this tuning of its protocol, or "
            f"with several, switched off: {settings.names(dsm_bench.WITHOUT)}."
        ),
    ] = None,
    row: Annotated[str | None, options.renamed("--row", "--rows")] = None,
) -> None:
    """Seconds of kernels with each transport.

    Ratios are to Pthreads in the same round.
    """
    if quick:
        options.check_unused({"--rounds": rounds}, "--quick has one round")
    options.check_pattern("--rows", rows)
    kernels = chosen(rows or "", programs)
    for name in machine or []:
        settings.check_machine(name)
    for name in without or []:
        settings.check_choice(dsm_bench.WITHOUT, name)
    records.check_lines(lines)
    options.check_processes(threads)
    libraries.refresh("native")
    entries = (dsm_bench.programs if programs else dsm_bench.contestants)(machine or ["coherent"])
    if without:
        entries = dsm_bench.and_without(entries, without)
    if again:
        entries = [*entries, Contestant(dsm_bench.PTHREADS, made=dsm_bench.AGAIN)]
    writer = records.Writer("dsm", threads=threads, quick=quick)
    all_measured = []
    silent = str(lines) == "-"
    pieces = [Piece(kernel, n + 1) for kernel in kernels for n in range(1 if quick else rounds or 3)]
    with nullcontext() if silent else progress.watcher(pieces) as watcher:
        for kernel in kernels:
            own = [piece for piece in pieces if piece.kernel is kernel]
            measured = measure(own, entries, threads, quick, watcher)
            all_measured.append(measured)
            for each in results(measured, entries, threads):
                writer.write(each)
    if lines:
        records.write_lines([r for m in all_measured for r in results(m, entries, threads)], lines)
    if silent:
        return
    show(all_measured, entries, threads)
    console.print(f"records: {paths.shown(writer.path)}")
    plots(all_measured, entries, threads, writer.path)


def chosen(rows: str, programs: bool) -> list[Kernel]:
    """The kernels of the programs whose names match; a UserError if none does."""
    matching = [each for each in dsm_bench.kernels() if re.search(rows, each.program)]
    kernels = [each for each in matching if programs or not each.pthreads_only]
    if not kernels:
        hint = f"{rows} is measured with --programs" if matching else f"no program is called {rows}"
        known = dict.fromkeys(each.program for each in dsm_bench.kernels() if programs or not each.pthreads_only)
        raise UserError(f"{hint}; there are {', '.join(known)}")
    return kernels


@dataclass(frozen=True)
class Piece:
    """A round of a kernel, for the display of the progress."""

    kernel: Kernel
    number: int

    @property
    def experiment(self) -> str:
        return f"round {self.number}:"

    @property
    def name(self) -> str:
        return self.kernel.title

    @property
    def cost(self) -> float:
        return self.kernel.cost


def measure(
    pieces: list[Piece],
    entries: list[Contestant],
    threads: int,
    quick: bool,
    watcher: progress.Bars | progress.Lines | None = None,
) -> Measured:
    """All contestants in turn, so that a change of the host's pace is one for all."""
    measured = Measured(pieces[0].kernel)
    for piece in pieces:
        if watcher:
            watcher.started(piece)
        measured.rounds.append(one_round(piece.kernel, entries, threads, quick))
        if watcher:
            watcher.ended(piece, None)
    return measured


def one_round(kernel: Kernel, entries: list[Contestant], threads: int, quick: bool) -> dict[Contestant, float | None]:
    times: dict[Contestant, float | None] = {}
    for contestant in dsm_bench.entries_of(kernel, entries):
        try:
            line = dsm_bench.run(kernel, contestant, threads, quick)
            times[contestant] = line["seconds"]
            if not contestant.made and (there := line.get("seconds_there")):
                times[dsm_bench.COPY_THERE] = there
        except UserError as mistake:
            times[contestant] = None
            paragraph(f"{kernel.title}, {contestant.label}: {mistake}", style="red")
    return times


def results(measured: Measured, entries: list[Contestant], threads: int) -> list[dict]:
    """A line for each contestant."""
    kernel = measured.kernel
    return [
        {
            "kind": "result",
            "program": kernel.program,
            "variant": kernel.variant,
            "transport": contestant.transport,
            "machine": contestant.machine,
            "program_of_pthreads": contestant.made or None,
            "all_cached": contestant.whole,
            "without": list(contestant.without) or None,
            "threads": kernel.threads or threads,
            **named("seconds", measured.seconds(contestant)),
            **named("ratio", measured.ratio(contestant)),
            "ratio_to": measured.base(contestant).label,
            **named("ratio_to_copy_there", measured.ratio(contestant, dsm_bench.COPY_THERE)),
            "goal": str(dsm_bench.goal_of(kernel, contestant) or "") or None,
            "met": measured.met(contestant),
            "samhita_2013": kernel.samhita or None,
            "argodsm": kernel.argodsm or None,
        }
        for contestant in dsm_bench.entries_of(kernel, entries)
    ]


def named(name: str, found: Spread | None) -> dict[str, float | None]:
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}


# --- The tables -----------------------------------------------------------------------------------


def show(all_measured: list[Measured], entries: list[Contestant], threads: int) -> None:
    for together in tables(entries):
        console.print(table(all_measured, together, threads))
    for measured in all_measured:
        for contestant in dsm_bench.entries_of(measured.kernel, entries):
            if contestant.whole and (seconds := measured.seconds(contestant)):
                text = f"{measured.kernel.title}, {contestant.label}: {duration(seconds.median)}"
                paragraph(f"{text}; its ratio in `window` is to this")
        for line in beside_copies(measured, entries):
            paragraph(line)
    if any(measured.kernel.samhita or measured.kernel.argodsm for measured in all_measured):
        console.print(quotations(all_measured))


def tables(entries: list[Contestant]) -> list[list[Contestant]]:
    """The columns of each table: one for all, or one for each transport by which programs of Pthreads run."""
    if not any(each.made and not each.is_base for each in entries):
        return [entries]
    ours = [each for each in entries if not each.is_base]
    kinds = dict.fromkeys((each.transport, each.machine, each.without) for each in ours)
    base = [each for each in entries if each.is_base]
    return [[*base, *(each for each in ours if (each.transport, each.machine, each.without) == kind)] for kind in kinds]


def beside_copies(measured: Measured, entries: list[Contestant]) -> list[str]:
    """A row that moves memory alone has two baselines."""
    there = measured.seconds(dsm_bench.COPY_THERE)
    if there is None:
        return []
    ratios = [
        f"{contestant.label} {ratio.median:.2f}"
        for contestant in entries
        if (ratio := measured.ratio(contestant, dsm_bench.COPY_THERE))
    ]
    return [
        f"{measured.kernel.title}: the ratios above are to a copy to new memory, which the kernel has to find "
        f"and clear, as that of a page cache. A copy to memory that is there already takes "
        f"{duration(there.median)}; beside that one: {', '.join(ratios)}"
    ]


def table(all_measured: list[Measured], entries: list[Contestant], threads: int) -> Table:
    title = (
        f"{threads} threads: median time, and how quick beside Pthreads in the same round "
        "(1: as quick; lowest to highest)"
    )
    made = Table(title=title, title_justify="left")
    made.add_column("program")
    for contestant in entries:
        made.add_column(contestant.label, justify="right")
    for measured in all_measured:
        cells = [cell(measured, contestant) for contestant in entries]
        made.add_row(measured.kernel.title, *cells)
    return made


def cell(measured: Measured, contestant: Contestant) -> str:
    seconds, ratio = measured.seconds(contestant), measured.ratio(contestant)
    if seconds is None:
        return "fails"
    text = duration(seconds.median)
    if ratio is None or (contestant.is_base and contestant.made != dsm_bench.AGAIN):
        return text
    text += f"\n{ratio.median:.3f}"
    if len(measured.rounds) > 1:
        text += f" ({ratio.low:.3f}-{ratio.high:.3f})"
    goal = dsm_bench.goal_of(measured.kernel, contestant)
    if goal is None:
        return text
    return f"{text}\n" + MET[measured.met(contestant)].format(f"goal {goal}:")


def quotations(all_measured: list[Measured]) -> Table:
    """The figures of others, with their sources."""
    made = Table(title="Quoted beside Pthreads, not measured in this run", title_justify="left")
    made.add_column("program")
    made.add_column("Samhita 2013, on its cluster")
    made.add_column("ArgoDSM (May 2026, MPICH 4.0.2), 2 processes\nmeasured on a 2-core host")
    for measured in all_measured:
        kernel = measured.kernel
        if kernel.samhita or kernel.argodsm:
            made.add_row(kernel.title, kernel.samhita, kernel.argodsm)
    return made


def plots(all_measured: list[Measured], entries: list[Contestant], threads: int, path: Path) -> None:
    """A PNG and an SVG beside the records."""
    from tombolo import plot  # matplotlib is slow to load and only needed here

    ours = [each for each in entries if not each.is_base]
    for suffix in (".png", ".svg"):
        out = path.with_suffix(suffix)
        plot.ratios(all_measured, ours, out, f"{threads} threads")
        console.print(f"plot: {paths.shown(out)}")


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
