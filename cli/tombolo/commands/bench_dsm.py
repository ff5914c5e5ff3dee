# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench dsm`: kernels on virtual shared memory beside the same with Pthreads."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tombolo import dsm_bench, paths, records, settings
from tombolo.console import console, paragraph
from tombolo.dsm_bench import Contestant, Kernel, Measured
from tombolo.errors import UserError


def dsm(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, and one round.")] = False,
    lines: Annotated[
        Path | None, typer.Option("--json", help="Write a line for each result; -: stdout.")
    ] = None,
    threads: Annotated[int, typer.Option("-n", help="Number of threads.", min=1)] = 2,
    rounds: Annotated[int, typer.Option(help="How often each has its turn.", min=1)] = 3,
    machine: Annotated[
        list[str] | None,
        typer.Option(help="Of the transport window; repeatable [default: coherent]"),
    ] = None,
    rows: Annotated[list[str] | None, typer.Option("--row", help="Only these programs.")] = None,
) -> None:
    """Seconds of kernels with each transport, and ratios to Pthreads in the same round."""
    for name in machine or []:
        settings.check_machine(name)
    kernels = [k for k in dsm_bench.KERNELS if not rows or k.program in rows]
    if not kernels:
        known = dict.fromkeys(k.program for k in dsm_bench.KERNELS)
        raise UserError(f"no program is called {rows[0]}; there are {', '.join(known)}")
    entries = dsm_bench.contestants(machine or ["coherent"])
    writer = records.Writer("dsm", threads=threads, quick=quick)
    all_measured = []
    for kernel in kernels:
        measured = measure(kernel, entries, threads, 1 if quick else rounds, quick)
        all_measured.append(measured)
        for each in results(measured, entries, threads):
            writer.write(each)
    if lines:
        write_lines([r for m in all_measured for r in results(m, entries, threads)], lines)
    if str(lines) != "-":
        console.print(table(all_measured, entries, threads))
        console.print(f"records: {paths.shown(writer.path)}")


def measure(
    kernel: Kernel, entries: list[Contestant], threads: int, rounds: int, quick: bool
) -> Measured:
    """All contestants in turn, so that a change of the host's pace is one for all."""
    measured = Measured(kernel)
    for _ in range(rounds):
        of_round: dict[Contestant, float | None] = {}
        for who in entries:
            try:
                of_round[who] = dsm_bench.run(kernel, who, threads, quick)["seconds"]
            except UserError as mistake:
                of_round[who] = None
                paragraph(f"{kernel.program}, {who.label}: {mistake}", style="red")
        measured.rounds.append(of_round)
    return measured


def results(measured: Measured, entries: list[Contestant], threads: int) -> list[dict]:
    """A line for each contestant."""
    return [
        {
            "kind": "result",
            "program": measured.kernel.program,
            "variant": measured.kernel.variant,
            "transport": who.transport,
            "machine": who.machine,
            "threads": threads,
            "seconds": measured.seconds(who),
            "ratio": measured.ratio(who),
        }
        for who in entries
    ]


def write_lines(found: list[dict], path: Path) -> None:
    text = "".join(json.dumps(each) + "\n" for each in found)
    if str(path) == "-":
        print(text, end="")
        return
    try:
        path.write_text(text)
    except OSError as mistake:
        raise UserError(f"{path}: {mistake.strerror}") from None


def table(all_measured: list[Measured], entries: list[Contestant], threads: int) -> Table:
    title = f"{threads} threads: time, and how quick beside Pthreads (1: as quick)"
    made = Table(title=title, title_justify="left")
    made.add_column("program")
    for who in entries:
        made.add_column(who.label, justify="right")
    made.add_column("goal of window", justify="right")
    for measured in all_measured:
        kernel = measured.kernel
        cells = [cell(measured, who) for who in entries]
        made.add_row(f"{kernel.program}, {kernel.variant}", *cells, goal(kernel))
    return made


def cell(measured: Measured, who: Contestant) -> str:
    seconds, ratio = measured.seconds(who), measured.ratio(who)
    if seconds is None:
        return "fails"
    if who.transport == dsm_bench.PTHREADS or ratio is None:
        return duration(seconds)
    return f"{duration(seconds)}\n{ratio:.3f}"


def goal(kernel: Kernel) -> str:
    if kernel.goal_us is not None:
        return f"{kernel.goal_us:g} us"
    return "" if kernel.goal is None else f"{kernel.goal:g}"


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
