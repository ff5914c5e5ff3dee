# SPDX-License-Identifier: Apache-2.0
"""`tombolo run`: starts an MPI program as it is, under its own MPI, with our library in front."""

import os
from typing import Annotated

import typer

from tombolo import mpis, programs, settings
from tombolo.errors import UserError
from tombolo.launch import Choice, job


def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    machine: Annotated[str, typer.Option(help="Of docs/settings.md.")] = "coherent",
    mpi: Annotated[
        str | None, typer.Option(help=" | ".join(mpis.KEYS) + " [default: the program's own]")
    ] = None,
    ranks: Annotated[int, typer.Option("-n", help="Number of processes.")] = 2,
    seed: Annotated[int | None, typer.Option(help="Of stale's random evictions.")] = None,
    evictions: Annotated[
        int | None, typer.Option(help="stale: one eviction in so many opportunities; 0: none.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="flushed: the device or file to map.")
    ] = None,
    atomics: Annotated[
        str | None, typer.Option(help="flushed: full | none, the atomics of the memory.")
    ] = None,
    on_findings: Annotated[
        str | None,
        typer.Option(
            help="stale: fail | report; with fail a process that reports a mistake of the program "
            "exits with 88 in place of 0 [default: fail, if the environment does not say]"
        ),
    ] = None,
    stats: Annotated[
        bool, typer.Option(help="Say at the end how many windows were served and forwarded.")
    ] = False,
    stock: Annotated[bool, typer.Option(help="Without Tombolo, for comparison.")] = False,
    show: Annotated[bool, typer.Option(help="Print the command line instead of running it.")] = False,
) -> None:
    """Run PROGRAM, an ordinary MPI program, under Tombolo."""
    settings.check_machine(machine)
    program = programs.locate(command[0])
    chosen, abi = binding(program, command, mpi)
    if on_findings is None and machine == "stale" and not os.environ.get("TOMBOLO_ON_FINDINGS"):
        on_findings = "fail"
    told = "text" if stats else None
    choice = None if stock else Choice(machine, seed, evictions, told, pool, atomics, on_findings)
    made = job(chosen, ranks, command, choice, abi)
    if show:
        print(" ".join(made.argv))
        return
    os.execvpe(made.argv[0], made.argv, made.env)


def binding(program, command: list[str], wanted: str | None) -> tuple[mpis.Mpi, str]:
    """Which MPI launches the program, and for which handle ABI our library must be."""
    link = programs.linked(program)
    if link is None:
        abi = programs.python_abi(command)
        if wanted is None and abi is None:
            raise UserError(f"{program} is not linked to an MPI itself: name the MPI with --mpi")
        chosen = mpis.need(wanted or ("openmpi" if abi == "openmpi" else "mpich"))
        return chosen, abi or chosen.kind
    chosen = mpis.need(wanted) if wanted else programs.mpi_of(link)
    if (chosen.kind == "openmpi") != (link.abi == "openmpi"):
        raise UserError(f"{program} is linked to {link.soname}, which {chosen.label} does not have")
    return chosen, link.abi
