# SPDX-License-Identifier: Apache-2.0
"""`tombolo svp`: programs of families of threads (SVP)."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tombolo import files, hints, options, programs, settings, svp, svp_compile
from tombolo.errors import UserError

TRANSPORT = "TOMBOLO_SVP_TRANSPORT"
DEFAULT_TRANSPORT = settings.row(TRANSPORT)["default"]

app = typer.Typer(help="Programs of families of threads (SVP).", no_args_is_help=True)
# A compiler takes all options itself, --help too.
OF_A_COMPILER = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@app.callback()
def main() -> None:
    """Programs of families of threads (SVP)."""


@app.command("run", context_settings=options.OF_PROGRAMS)
@options.of_table("svp run")
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    *,
    processes: Annotated[
        int,
        typer.Option(
            "-n",
            help="The program has so many processes, of which all but the first hold remote places.",
            min=1,
            max=options.MOST_PROCESSES,
        ),
    ] = 1,
    given: settings.Given,
    mpi: Annotated[
        str | None,
        typer.Option(help=f"The launcher of this MPI starts the processes: {options.MPIS}."),
    ] = None,
    show: options.Show = False,
) -> None:
    """Run PROGRAM, whose families run on the processors of this host.

    Under mpiexec, each process of which calls this command, they run in all its processes.
    """
    options.check_text(mpi=mpi)
    among_others = svp.started_by_an_mpi()
    if among_others and (processes > 1 or mpi):
        raise UserError("the launcher of an MPI has started this process, and its -n says how many there are")
    if processes == 1 and not among_others:
        between = {
            "--transport": None if given.transport == DEFAULT_TRANSPORT else given.transport,
            "--machine": None if given.machine == settings.machines()[0] else given.machine,
            **given.of_machines(),
            "--mpi": mpi,
        }
        options.check_unused(between, "one process shares its memory with no other; ask for more with -n")
    program = programs.locate(command[0])
    options.check_readers([settings.machine(given.machine)], given.of_machines())
    if not show:
        options.check_processes(processes)
    tell_of_no_families(program, command[1:], processes)
    trace = None if given.trace is None else Path(given.trace)
    if trace is not None:
        options.check_replaces_no_program("--trace", trace, program)
        files.check(trace)
    parts = svp.Parts(trace, processes) if trace is not None and processes > 1 else None
    path = parts.path if parts else trace.absolute() if trace is not None else None
    choice = given.but(trace=path)
    whole = [str(program), *command[1:]]
    if mpi is not None:
        job = svp.mpi_job(choice, mpi, processes, whole)
        argv, env = job.argv, job.env
    else:
        argv, env = svp.command(processes, whole), svp.environment(choice)
    if show:
        print(shlex.join(argv))
        return
    if parts is not None:
        raise typer.Exit(parts.run(argv, env))
    programs.start(argv, env)


def tell_of_no_families(program: Path, arguments: list[str], processes: int) -> None:
    """A UserError for a program that is another command's, and a warning for one without the runtime of
    families, unless an argument names one that has it: a program such as env may start one that this command
    does not see, and of a script that is not known at all, nor of a program that may only be executed."""
    if not os.access(program, os.R_OK) or not programs.is_elf(program) or programs.has_families(program):
        return
    programs.check_is_without_mpi(program, "tombolo svp run")
    if programs.calls_dsm(program):
        raise UserError(f"{program} calls tombolo/dsm.h and has no families: {hints.RUN_SHARED}")
    if any(programs.is_of_families(word) for word in arguments):
        return
    each = (
        "it runs as without this command" if processes == 1 else f"each of {processes} processes does all of its work"
    )
    print(
        f"tombolo: {program.name} is not linked to the runtime of families: unless it starts a program, or loads a "
        f"library, that has families, {each}",
        file=sys.stderr,
    )


@app.command("flags")
def flags(
    c: Annotated[bool, typer.Option("--c", help="The options are for a C compiler, and tombolo/svp.h.")] = False,
) -> None:
    """Print the options of a compiler for programs with families.

    Without --c they are those of a C++ compiler, for tombolo/svp.hpp.
    """
    print(" ".join(svp.flags_of_c() if c else svp.flags()))


# `python -m tombolo` calls the compiler itself: this is for the list of commands.
@app.command("compile", context_settings=OF_A_COMPILER)
def compile_(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a program in the language of families.

    It is C99 with thread, shared, create and sync.
    """
    svp_compile.main("tombolo svp compile", arguments or [])
