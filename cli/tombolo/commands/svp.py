# SPDX-License-Identifier: Apache-2.0
"""`tombolo svp`: programs of families of threads (SVP)."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tombolo import mpis, programs, settings, svp, svp_compile
from tombolo.errors import UserError

app = typer.Typer(help="Programs of families of threads (SVP).", no_args_is_help=True)
# A compiler takes all options itself, --help too.
OF_A_COMPILER = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@app.callback()
def main() -> None:
    """Programs of families of threads (SVP)."""


@app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    processes: Annotated[
        int, typer.Option("-n", help="Number of processes; the others hold remote places.", min=1)
    ] = 1,
    workers: Annotated[
        int | None,
        typer.Option(help="Of the default place [default: one for each processor]", min=1),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(help="Between processes; see docs/settings.md.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="Between processes: of docs/settings.md [default: coherent]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of stale's random evictions.", min=0)] = None,
    stats: Annotated[
        bool, typer.Option(help="Say at the end how families ran, and how often workers waited.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write a trace of families, places and channels; Perfetto opens it."),
    ] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help="Start the processes by its launcher: " + " | ".join(mpis.KEYS)),
    ] = None,
    show: Annotated[bool, typer.Option(help="Print the command line instead of running it.")] = False,
) -> None:
    """Run PROGRAM, whose families run on the processors of this host.

    Under mpiexec, each process of which calls this command, they run in all its processes.
    """
    among_others = svp.started_by_an_mpi()
    if among_others and (processes > 1 or mpi):
        raise UserError("the launcher of an MPI has started this process, and its -n says how many there are")
    between = {"--transport": transport, "--machine": machine, "--seed": seed}
    alone = processes == 1 and not among_others
    for name in (name for name, value in between.items() if value is not None and alone):
        raise UserError(f"{name}: one process shares its memory with no other; ask for more with -n")
    if machine is not None:
        settings.check_machine(machine)
    settings.check_choice("TOMBOLO_SVP_TRANSPORT", transport)
    program = programs.locate(command[0])
    told = "text" if stats else None
    choice = svp.Choice(workers, transport, machine, seed, told, trace and str(trace.absolute()))
    whole = [str(program), *command[1:]]
    argv, env = svp.command(processes, whole), svp.environment(choice)
    if mpi is not None and processes > 1:
        job = svp.mpi_job(choice, mpi, processes, whole)
        argv, env = job.argv, job.env
    if show:
        print(" ".join(argv))
        return
    if trace is not None and processes > 1:
        raise typer.Exit(svp.run_traced(argv, env, processes, trace))
    os.execvpe(argv[0], argv, env)


@app.command("flags")
def flags(
    c: Annotated[bool, typer.Option("--c", help="For a C compiler, and tombolo/svp.h.")] = False,
) -> None:
    """Print the options for a C++ compiler that a program with svp/svp.h needs."""
    print(" ".join(svp.flags_of_c() if c else svp.flags()))


# `python -m tombolo` calls the compiler itself: this is for the list of commands.
@app.command("compile", context_settings=OF_A_COMPILER)
def compile_(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a program in the language of families: C99 with thread, shared, create and sync."""
    svp_compile.main("tombolo svp compile", arguments or [])
