# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench svp`: families beside oneTBB, OpenMP, Rayon and goroutines, in turn."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tombolo import host, libraries, mpis, options, paths, records, svp_bench
from tombolo.console import console, paragraph
from tombolo.svp_bench import Row


def svp(
    quick: Annotated[bool, typer.Option("--quick", help="There is one round, with small sizes.")] = False,
    lines: Annotated[
        Path | None,
        typer.Option("--json", help="A line for each result is written to this file; - is standard output."),
    ] = None,
    workers: Annotated[
        list[int] | None,
        typer.Option(
            help="Programs have so many workers, or several numbers in turn. [default: 1, and one for each processor]",
            min=1,
            max=1024,
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Each contestant has its turn so often. [default: 5]", min=1)
    ] = None,
    strict: Annotated[bool, typer.Option(help="The status is 1 where a goal is not reached.")] = False,
    mpi: Annotated[
        str | None,
        typer.Option(
            help=f"Families that only this MPI joins are measured instead, beside its own ping-pong: {options.MPIS}."
        ),
    ] = None,
) -> None:
    """Nanoseconds of a task, of families and other run-times."""
    check(mpi, workers, rounds, quick)
    records.check_lines(lines)
    libraries.refresh("native", "svp-bench")
    silent = str(lines) == "-"
    say = (lambda text: None) if silent else console.print
    counts = [1] if mpi else list(dict.fromkeys(workers or [1, host.cores()]))
    writer = records.Writer("svp", workers=counts, quick=quick, mpi=mpi)
    if mpi:
        rows, absent = svp_bench.ping_pong(mpi, quick), list[str]()
    else:
        rows, absent = beside_others(counts, 1 if quick else rounds or 5, quick, say)
    keep(rows, writer, lines)
    behind = [text for row in rows if (text := row.verdict())]
    if not silent:
        show(rows, behind, absent, writer.path)
    if strict and behind:
        raise typer.Exit(1)


def check(mpi: str | None, workers: list[int] | None, rounds: int | None, quick: bool) -> None:
    """A UserError for an MPI that is not there, or an option that is not read."""
    options.check_text(mpi=mpi)
    if mpi:
        mpis.need(mpi)
        options.check_unused({"--workers": workers, "--rounds": rounds}, "with --mpi one worker has one round")
    if quick:
        options.check_unused({"--rounds": rounds}, "--quick has one round")


def beside_others(
    counts: list[int], rounds: int, quick: bool, say: Callable[[str], None]
) -> tuple[list[Row], list[str]]:
    """The rows, and a sentence for each contestant that is not there."""
    entries, absent = svp_bench.contestants()
    rows = svp_bench.measure(entries, counts, rounds, quick, say)
    return rows, absent + svp_bench.absent_of(rows)


def keep(rows: list[Row], writer: records.Writer, lines: Path | None) -> None:
    """Writes a record for each result, and a line where these are wanted."""
    told = [each for row in rows for each in svp_bench.results(row)]
    for each in told:
        writer.write(each)
    if lines:
        records.write_lines(told, lines)


def show(rows: list[Row], behind: list[str], absent: list[str], path: Path) -> None:
    console.print(table(rows))
    for text in behind:
        paragraph(text, style="yellow")
    for text in filter(None, (row.remark() for row in rows)):
        paragraph(text)
    for text in absent:
        paragraph(text)
    console.print(f"records: {paths.shown(path)}")
    from tombolo import plot  # matplotlib is slow to load and only needed here

    for suffix in (".png", ".svg"):
        out = path.with_suffix(suffix)
        plot.families(rows, out, f"{host.cores()} processors")
        console.print(f"plot: {paths.shown(out)}")


def runtimes(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.samples))


def table(rows: list[Row]) -> Table:
    made = Table(
        title="ns a task: median (lowest to highest), and times that of families",
        title_justify="left",
    )
    made.add_column("benchmark")
    names = runtimes(rows)
    for name in names:
        made.add_column(name, justify="right")
    for row in sorted(rows, key=lambda each: each.workers):
        made.add_row(row.title, *(cell(row, name) for name in names))
    return made


def cell(row: Row, runtime: str) -> str:
    if runtime not in row.samples:
        return ""
    time = row.time(runtime)
    text = f"{time.median:.3g}"
    if time.high > time.low:
        text += f" ({time.low:.3g}-{time.high:.3g})"
    return text if runtime == row.ours() else f"{text}\n{row.ratio(runtime):.2f}"
