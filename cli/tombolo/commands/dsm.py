# SPDX-License-Identifier: Apache-2.0
"""`tombolo dsm`: programs on virtual shared memory, one process for each thread."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tombolo import dsm, programs, settings
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
    threads: Annotated[int, typer.Option("-n", help="Number of threads.", min=1)] = 2,
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
    """Run PROGRAM, which calls tombolo/dsm.h, in one process for each thread."""
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
    choice = dsm.Choice(transport, protocol, machine, memory, cache, "text" if stats else None)
    argv = dsm.command(threads, [str(programs.locate(command[0])), *command[1:]])
    if show:
        print(" ".join(argv))
        return
    os.execvpe(argv[0], argv, dsm.environment(choice))


@app.command("flags")
def flags() -> None:
    """Print the options for a C compiler that a program with tombolo/dsm.h needs."""
    print(" ".join(dsm.flags()))


@app.command(
    "cc", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def cc(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program: not there yet."""
    raise _no_compiler("cc", arguments)


@app.command(
    "c++", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def cxx(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C++: not there yet."""
    raise _no_compiler("c++", arguments)


def _no_compiler(name: str, arguments: list[str] | None) -> UserError:
    given = " ".join(Path(each).name for each in arguments or [])
    return UserError(
        f"tombolo dsm {name} {given}: programs with Pthreads calls cannot be compiled yet; one that "
        "calls tombolo/dsm.h can, with the options that `tombolo dsm flags` prints"
    )
