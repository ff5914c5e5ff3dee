# SPDX-License-Identifier: Apache-2.0
"""`tombolo dsm`: programs on virtual shared memory, one process for each thread."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tombolo import compilers, dsm, dsm_atomics, dsm_pthreads, files, mpis, options, programs, settings
from tombolo.errors import UserError

TRANSPORT = "TOMBOLO_DSM_TRANSPORT"
PROTOCOL = "TOMBOLO_DSM_PROTOCOL"

app = typer.Typer(help="Programs on virtual shared memory.", no_args_is_help=True)
# A compiler takes all options itself, --help too.
OF_A_COMPILER = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@app.callback()
def main() -> None:
    """Programs on virtual shared memory."""


@app.command("run", context_settings=options.OF_PROGRAMS)
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    threads: Annotated[
        int | None,
        typer.Option(
            "-n",
            help="The program has so many threads; one of Pthreads may have some more. [default: 2]",
            min=1,
            max=options.MOST_PROCESSES,
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            help="The threads map the same pages (map), or have a cache of pages each on one host (window) or also "
            f"between hosts (mpi): {settings.names(TRANSPORT)}. [default: map]"
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help=f"The memory is on this machine: {options.MACHINES}; one but coherent needs the transport window. "
            f"{options.MACHINE_DEFAULT}"
        ),
    ] = None,
    seed: options.Seed = None,
    evictions: options.Evictions = None,
    pool: options.Pool = None,
    protocol: Annotated[
        str | None,
        typer.Option(help=f"Cached pages are consistent by this protocol: {settings.names(PROTOCOL)}. [default: regional]"),
    ] = None,
    servers: Annotated[
        int | None,
        typer.Option(
            help="So many memory servers hold the memory, besides the threads, with the transports window and mpi. "
            "[default: 0]",
            min=0,
            max=dsm.MOST_SERVERS,
        ),
    ] = None,
    mpi: Annotated[
        str | None,
        typer.Option(
            help=f"The launcher of this MPI starts the threads of the transport mpi: {options.MPIS}. [default: the "
            "first that is here]"
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="The threads share so much memory, such as 512MiB. [default: 1GiB]", metavar="SIZE"),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(help="Each thread caches so much of it, where it caches pages. [default: 256MiB]", metavar="SIZE"),
    ] = None,
    stats: options.Stats = False,
    atomics: Annotated[
        str | None,
        typer.Option(
            help="A program of Pthreads with atomic instructions is refused where threads cache pages, or they are "
            "ignored: refuse | ignore. [default: refuse]"
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            help="A trace of faults, pages and waits is written to this file; Perfetto opens it.", metavar="PATH"
        ),
    ] = None,
    show: options.Show = False,
) -> None:
    """Run PROGRAM in one process for each thread.

    It calls tombolo/dsm.h, or Pthreads alone: a Pthreads program runs as it is.
    """
    options.check_text(mpi=mpi, pool=pool, trace=trace)
    options.check_size("--memory", memory)
    options.check_size("--cache", cache)
    program = programs.locate(command[0])
    dsm_pthreads.check_is_no_script(program)
    programs.check_is_without_mpi(program, "tombolo dsm run")
    if machine is not None:
        settings.check_machine(machine)
    settings.check_choice(TRANSPORT, transport)
    settings.check_choice(PROTOCOL, protocol)
    if atomics not in (None, "refuse", "ignore"):
        raise UserError(f"--atomics {atomics}: there are refuse and ignore")
    if mpi is not None:
        mpis.need(mpi)
    chosen = transport or os.environ.get(TRANSPORT) or "map"
    settings.check_choice(TRANSPORT, chosen)
    if trace is not None:
        options.check_replaces_no_program("--trace", trace, program)
        if chosen != "mpi":  # else the first process may be on another host
            files.check(Path(trace))
    unchanged = not programs.calls_dsm(program)
    if unchanged:
        check_of_pthreads(program.name, chosen, machine, protocol, cache, servers, trace)
        dsm_pthreads.check(str(program))
    else:
        options.check_unused({"--atomics": atomics}, f"{program.name} calls tombolo/dsm.h")
        if chosen == "map":
            of_pages = {"--protocol": protocol, "--cache": cache}
            options.check_unused(of_pages, "all threads map the same pages; with --transport window each caches pages")
    of_machine = {"--seed": seed, "--evictions": evictions, "--pool": pool}
    check_of_transport(chosen, machine, of_machine, mpi, atomics)
    if unchanged and chosen != "map" and atomics != "ignore":
        dsm_atomics.check(program)
    if not show and (chosen == "mpi" or not unchanged):
        options.check_processes((threads or 2) + dsm.memory_servers(servers))
    told = "text" if stats else None
    choice = dsm.Choice(transport, protocol, machine, memory, cache, told, trace, servers, seed, evictions, pool)
    words = [str(program), *command[1:]]
    if unchanged and chosen == "mpi":
        job = dsm_pthreads.mpi_job(words, threads, memory, cache, told, mpi, servers)
        start(job.argv, job.env, show)
    elif unchanged:
        most = dsm_pthreads.processes(threads)
        environment = dsm_pthreads.environment(most, memory, transport, machine, cache, told, trace, servers)
        start(command, environment | choice.of_machine(), show, str(program))
    elif chosen == "mpi":
        job = dsm.mpi_job(replace(choice, transport=chosen), mpi, threads or 2, words)
        start(job.argv, job.env, show)
    else:
        start(dsm.command(threads or 2, words), dsm.environment(choice), show)


def check_of_transport(
    transport: str,
    machine: str | None,
    of_machine: Mapping[str, object],
    mpi: str | None,
    atomics: str | None,
) -> None:
    """A UserError for an option that this transport does not read."""
    if transport == "window":
        options.check_readers([settings.machine(machine)], of_machine)
    else:
        other = None if machine == settings.machines()[0] else machine
        options.check_unused({"--machine": other, **of_machine}, "it is for --transport window")
    if transport == "map":
        options.check_unused({"--atomics": atomics}, "all threads map the same pages, as a Pthreads program does")
    if transport != "mpi":
        options.check_unused({"--mpi": mpi}, "it is for --transport mpi")


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


def start(argv: list[str], environment: dict[str, str], show: bool, file: str | None = None) -> None:
    """The command takes this process's place, or is shown on the screen. `file`: the program, if argv[0]
    does not name it."""
    if show:
        print(shlex.join(argv))
    else:
        programs.start(argv, environment, file)


@app.command("flags")
def flags() -> None:
    """Print the options of a C compiler for tombolo/dsm.h."""
    print(" ".join(dsm.flags()))


# `python -m tombolo` calls the compilers itself, without this module: these are for the list of
# commands, and for callers of the application.
@app.command("cc", context_settings=OF_A_COMPILER)
def cc(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C by clang.

    The stores under locks are recorded.
    """
    compilers.main("clang", "tombolo dsm cc", arguments or [])


@app.command("c++", context_settings=OF_A_COMPILER)
def cxx(arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS...")] = None) -> None:
    """Compile a Pthreads program in C++ by clang++.

    The stores under locks are recorded.
    """
    compilers.main("clang++", "tombolo dsm c++", arguments or [])
