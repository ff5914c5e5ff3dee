# SPDX-License-Identifier: Apache-2.0
"""`tombolo run`: starts an MPI program as it is, under its own MPI, with our library in front."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from tombolo import hints, mpis, options, programs, settings
from tombolo.errors import UserError
from tombolo.launch import job


@options.of_table("run")
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    *,
    ranks: Annotated[int, typer.Option("-n", help="The program has so many processes.", min=1)] = 2,
    given: settings.Given,
    mpi: Annotated[
        str | None,
        typer.Option(help=f"The launcher of this MPI starts the program: {options.MPIS}. [default: the program's own]"),
    ] = None,
    stock: Annotated[bool, typer.Option(help="The program runs without Tombolo, for comparison.")] = False,
    show: options.Show = False,
) -> None:
    """Run PROGRAM, an ordinary MPI program, under Tombolo."""
    options.check_text(mpi=mpi)
    if stock:
        options.check_unused(given.by_flag(), "with --stock the program runs without Tombolo")
    program = programs.locate(command[0])
    chosen, abi = binding(program, command, mpi)
    if not show:
        options.check_processes(ranks)
    if stock:
        made = job(chosen, ranks, command, None, abi)
    else:
        where = settings.machine(given.machine)
        options.check_readers([where], given.of_machines())
        given = given.but(machine=where)
        if given.on_findings is None and where == "stale" and not os.environ.get("TOMBOLO_ON_FINDINGS"):
            given = given.but(on_findings="fail")
        made = job(chosen, ranks, command, given, abi)
    if show:
        print(shlex.join(made.argv))
        return
    programs.start(made.argv, made.env)


def binding(program: Path, command: list[str], wanted: str | None) -> tuple[mpis.Mpi, str]:
    """Which MPI launches the program, and for which handle ABI our library must be."""
    link = programs.linked(program)
    if link is None:
        abi = programs.python_abi(command)
        if wanted is None and abi is None:
            raise UserError(without_mpi(program))
        chosen = mpis.need(wanted or ("openmpi" if abi == "openmpi" else "mpich"))
        return chosen, abi or chosen.kind
    chosen = mpis.need(wanted) if wanted else programs.mpi_of(link)
    if (chosen.kind == "openmpi") != (link.abi == "openmpi"):
        raise UserError(f"{program} is linked to {link.soname}, which {chosen.label} does not have")
    return chosen, link.abi


def without_mpi(program: Path) -> str:
    """Why the program's MPI is not known, and what to do."""
    if program.name.startswith("python"):  # maybe a script that starts the interpreter
        return f"{program} has no mpi4py that can be loaded: name the MPI of what it starts with --mpi"
    if not programs.is_elf(program):
        if programs.is_script(program):
            return f"{program} is a script, which does not tell the MPI of what it starts: name that with --mpi"
        return f"{program} is neither an ELF program nor a script with its interpreter in the first line"
    if programs.calls_dsm(program):
        return f"{program} calls tombolo/dsm.h and no MPI: {hints.RUN_SHARED}"
    if programs.has_families(program):
        return f"{program} has families and no MPI: {hints.RUN_FAMILIES}"
    return (
        f"{program} is linked to no MPI: if it loads one itself, or starts a program that has one, name that with "
        f"--mpi; if it is a program of Pthreads, {hints.RUN_SHARED}"
    )
