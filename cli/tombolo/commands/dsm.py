# SPDX-License-Identifier: Apache-2.0
"""`tombolo dsm`: programs on virtual shared memory, one process for each thread."""

import os
from typing import Annotated

import typer

from tombolo import compilers, dsm, dsm_world, programs, settings
from tombolo.errors import UserError

app = typer.Typer(help="Programs on virtual shared memory.", no_args_is_help=True)


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
        typer.Option("-n", help="Number of threads [default: 2]; of a Pthreads program, at most.", min=1),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(help="map | window: the same pages, or a cache for each [default: map]"),
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="Of docs/settings.md; any with window [default: coherent]")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="window: regional | sequential [default: regional]")
    ] = None,
    servers: Annotated[
        int, typer.Option(help="Memory servers besides the threads: none yet.", min=0)
    ] = 0,
    memory: Annotated[
        str | None, typer.Option(help="Of the program, such as 512MiB [default: 1GiB]")
    ] = None,
    cache: Annotated[
        str | None, typer.Option(help="window: of each thread [default: 256MiB]")
    ] = None,
    stats: Annotated[bool, typer.Option(help="Say at the end how often pages moved.")] = False,
    show: Annotated[bool, typer.Option(help="Print the command line instead of running it.")] = False,
) -> None:
    """Run PROGRAM in one process for each thread: one that calls tombolo/dsm.h, or Pthreads alone.

    A Pthreads program runs as it is.
    """
    if transport == "mpi":
        raise UserError("transport mpi, between hosts, is not there yet; map and window are")
    if servers:
        raise UserError(
            "memory servers apart from the threads are not there yet: each thread is the home of a "
            "part of the memory"
        )
    if machine is not None:
        settings.check_machine(machine)
    settings.check_choice("TOMBOLO_DSM_TRANSPORT", transport)
    settings.check_choice("TOMBOLO_DSM_PROTOCOL", protocol)
    program = programs.locate(command[0])
    if dsm_world.is_unchanged(program):
        check_of_pthreads(program.name, transport or "map", machine, protocol, cache, stats)
        dsm_world.check(str(program))
        environment = dsm_world.environment(threads, memory, transport, machine, cache)
        start([str(program), *command[1:]], environment, show)
        return
    choice = dsm.Choice(transport, protocol, machine, memory, cache, "text" if stats else None)
    start(dsm.command(threads or 2, [str(program), *command[1:]]), dsm.environment(choice), show)


def check_of_pthreads(
    program: str,
    transport: str,
    machine: str | None,
    protocol: str | None,
    cache: str | None,
    stats: bool,
) -> None:
    """A UserError for an option that a Pthreads program does not have."""
    mapped = transport == "map"
    other = {
        "--protocol": protocol not in (None, "regional") or (mapped and protocol is not None),
        "--machine": mapped and machine not in (None, "coherent"),
        "--cache": mapped and cache is not None,
        "--stats": stats,
    }
    for name in (name for name, given in other.items() if given):
        why = "map the same pages of one coherent host" if mapped else "keep to protocol regional"
        raise UserError(
            f"{name}: {program} does not call tombolo/dsm.h. The processes of a Pthreads program "
            f"{why}, and count nothing yet"
        )


def start(argv: list[str], environment: dict[str, str], show: bool) -> None:
    """In this process's place, or on the screen."""
    if show:
        print(" ".join(argv))
        return
    os.execvpe(argv[0], argv, environment)


@app.command("flags")
def flags() -> None:
    """Print the options for a C compiler that a program with tombolo/dsm.h needs."""
    print(" ".join(dsm.flags()))


# `python -m tombolo` calls the compilers itself, without this module: these are for the list of
# commands, and for callers of the application.
@app.command(
    "cc", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def cc(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C: clang, with the stores under locks recorded."""
    compilers.main("clang", "tombolo dsm cc", arguments or [])


@app.command(
    "c++", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def cxx(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C++: clang++, with the stores under locks recorded."""
    compilers.main("clang++", "tombolo dsm c++", arguments or [])
