# SPDX-License-Identifier: Apache-2.0
"""`tombolo run`: starts an MPI program as it is, under its own MPI, with our library in front."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from tombolo import hints, mpis, options, programs, settings
from tombolo.errors import UserError
from tombolo.launch import Choice, job


def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    machine: Annotated[
        str | None,
        typer.Option(
            help=f"The windows are on this machine: {options.MACHINES}. {options.MACHINE_DEFAULT}"
        ),
    ] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help=f"The launcher of this MPI starts the program: {options.MPIS}. [default: the program's own]"),
    ] = None,
    ranks: Annotated[int, typer.Option("-n", help="The program has so many processes.", min=1)] = 2,
    seed: options.Seed = None,
    evictions: options.Evictions = None,
    pool: options.Pool = None,
    atomics: Annotated[
        str | None,
        typer.Option(
            help="The memory of the machine flushed has all atomics, or they are built from loads and stores: "
            f"{settings.names('TOMBOLO_ATOMICS')}."
        ),
    ] = None,
    on_findings: Annotated[
        str | None,
        typer.Option(
            help="A process that reports a mistake of the program on the machine stale exits with 88 in place of 0 "
            f"(fail), or as the program says: {settings.names('TOMBOLO_ON_FINDINGS')}. [default: "
            "TOMBOLO_ON_FINDINGS's, else fail]"
        ),
    ] = None,
    stats: options.Stats = False,
    stock: Annotated[bool, typer.Option(help="The program runs without Tombolo, for comparison.")] = False,
    show: options.Show = False,
) -> None:
    """Run PROGRAM, an ordinary MPI program, under Tombolo."""
    options.check_text(mpi=mpi, pool=pool)
    of_machine = {
        "--seed": seed,
        "--evictions": evictions,
        "--pool": pool,
        "--atomics": atomics,
        "--on-findings": on_findings,
    }
    if stock:
        ours = {"--machine": machine, **of_machine, "--stats": stats}
        options.check_unused(ours, "with --stock the program runs without Tombolo")
    program = programs.locate(command[0])
    chosen, abi = binding(program, command, mpi)
    if not show:
        options.check_processes(ranks)
    if stock:
        made = job(chosen, ranks, command, None, abi)
    else:
        where = settings.machine(machine)
        options.check_readers([where], of_machine)
        settings.check_choice("TOMBOLO_ATOMICS", atomics)
        settings.check_choice("TOMBOLO_ON_FINDINGS", on_findings)
        if on_findings is None and where == "stale" and not os.environ.get("TOMBOLO_ON_FINDINGS"):
            on_findings = "fail"
        told = "text" if stats else None
        made = job(chosen, ranks, command, Choice(where, seed, evictions, told, pool, atomics, on_findings), abi)
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
