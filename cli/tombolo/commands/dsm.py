# SPDX-License-Identifier: Apache-2.0
"""`tombolo dsm`: programs on virtual shared memory, one process for each thread."""

import os
import sys
from typing import Annotated

import typer

from tombolo import compilers, dsm, dsm_atomics, dsm_progress, dsm_world, mpis, programs, settings
from tombolo.errors import UserError

app = typer.Typer(help="Programs on virtual shared memory.", no_args_is_help=True)
# A compiler takes all options itself, --help too.
OF_A_COMPILER = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@app.callback()
def main() -> None:
    """Programs on virtual shared memory."""


@app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    threads: Annotated[
        int | None,
        typer.Option("-n", help="Number of threads [default: 2]; a Pthreads program may have some more.", min=1),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            help="map | window | mpi: the same pages, a cache for each, also between hosts [default: map]"
        ),
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="Of docs/settings.md; any with window [default: coherent]")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="window: regional | sequential [default: regional]")
    ] = None,
    servers: Annotated[
        int | None,
        typer.Option(help="window, mpi: memory servers besides the threads [default: 0]", min=0),
    ] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help="mpi: " + " | ".join(mpis.KEYS) + " [default: the first that is here]"),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Of the program, such as 512MiB [default: 1GiB]")
    ] = None,
    cache: Annotated[
        str | None, typer.Option(help="window: of each thread [default: 256MiB]")
    ] = None,
    stats: Annotated[bool, typer.Option(help="Say at the end how often pages moved.")] = False,
    atomics: Annotated[
        str,
        typer.Option(help="window, Pthreads programs: refuse | ignore atomic instructions in them."),
    ] = "refuse",
    trace: Annotated[
        str | None, typer.Option(help="Write a trace of faults, pages and waits; Perfetto opens it.")
    ] = None,
    progress: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="A line on standard error in so many seconds; 0: none [default: "
            f"{dsm_progress.EVERY_SECONDS} where that is a terminal, else none]",
            min=0,
        ),
    ] = None,
    show: Annotated[bool, typer.Option(help="Print the command line instead of running it.")] = False,
) -> None:
    """Run PROGRAM in one process for each thread: one that calls tombolo/dsm.h, or Pthreads alone.

    A Pthreads program runs as it is.
    """
    if machine is not None:
        settings.check_machine(machine)
    settings.check_choice("TOMBOLO_DSM_TRANSPORT", transport)
    settings.check_choice("TOMBOLO_DSM_PROTOCOL", protocol)
    if atomics not in ("refuse", "ignore"):
        raise UserError(f"--atomics {atomics}: there are refuse and ignore")
    if mpi is not None:
        mpis.need(mpi)
    program = programs.locate(command[0])
    dsm_world.check_is_no_script(program)
    told = "text" if stats else None
    if dsm_world.is_unchanged(program):
        chosen = transport or os.environ.get("TOMBOLO_DSM_TRANSPORT") or "map"
        check_of_pthreads(program.name, chosen, machine, protocol, cache, servers, trace)
        dsm_world.check(str(program))
        if chosen != "map" and atomics == "refuse":
            dsm_atomics.check(program)
        if chosen == "mpi":
            words = [str(program), *command[1:]]
            job = dsm_world.mpi_job(words, threads, memory, cache, told, mpi, servers)
            start(job.argv, job.env, show, progress)
            return
        most = dsm_world.processes(threads)
        environment = dsm_world.environment(
            most, memory, transport, machine, cache, told, trace, servers
        )
        start(command, environment, show, progress, str(program))
        return
    choice = dsm.Choice(transport, protocol, machine, memory, cache, told, trace, servers)
    if transport == "mpi":
        job = dsm.mpi_job(choice, mpi, threads or 2, [str(program), *command[1:]])
        start(job.argv, job.env, show, progress)
        return
    argv = dsm.command(threads or 2, [str(program), *command[1:]])
    start(argv, dsm.environment(choice), show, progress)


def check_of_pthreads(
    program: str,
    transport: str,
    machine: str | None,
    protocol: str | None,
    cache: str | None,
    servers: int | None,
    trace: str | None,
) -> None:
    """A UserError for an option that a Pthreads program does not have."""
    mapped = transport == "map"
    unchanged = f"{program} does not call tombolo/dsm.h"
    if protocol == "sequential" and transport != "map":
        raise UserError(
            f"--protocol sequential: {unchanged}. Other threads would take "
            "pages away that a system call of a Pthreads program is using; use regional, or --transport "
            "map, where all stores are seen at once"
        )
    why = {
        "map": "map the same pages of one coherent host; add --transport window",
        "mpi": "are on several hosts, which are coherent, and write no trace",
    }
    other = {
        "--protocol": mapped and protocol is not None,
        "--cache": mapped and cache is not None,
        "--servers": mapped and bool(servers),
        "--machine": transport != "window" and machine not in (None, "coherent"),
        "--trace": transport == "mpi" and trace is not None,
    }
    for name in (name for name, given in other.items() if given):
        raise UserError(f"{name}: {unchanged}. The processes of a Pthreads program {why[transport]}")


def start(
    argv: list[str],
    environment: dict[str, str],
    show: bool,
    progress: float | None,
    file: str | None = None,
) -> None:
    """In this process's place, or on the screen. `progress`: seconds between two lines; `file`: the
    program, if argv[0] does not name it."""
    if show:
        print(" ".join(argv))
        return
    every = dsm_progress.EVERY_SECONDS if progress is None and sys.stderr.isatty() else progress
    if every:
        dsm_progress.begin(every)
    os.execvpe(file or argv[0], argv, environment)


@app.command("flags")
def flags() -> None:
    """Print the options for a C compiler that a program with tombolo/dsm.h needs."""
    print(" ".join(dsm.flags()))


# `python -m tombolo` calls the compilers itself, without this module: these are for the list of
# commands, and for callers of the application.
@app.command("cc", context_settings=OF_A_COMPILER)
def cc(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C: clang, with the stores under locks recorded."""
    compilers.main("clang", "tombolo dsm cc", arguments or [])


@app.command("c++", context_settings=OF_A_COMPILER)
def cxx(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C++: clang++, with the stores under locks recorded."""
    compilers.main("clang++", "tombolo dsm c++", arguments or [])
