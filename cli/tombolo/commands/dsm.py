# SPDX-License-Identifier: Apache-2.0
"""`tombolo dsm`: programs on virtual shared memory, one process for each thread."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from tombolo import compilers, dsm, dsm_atomics, dsm_pthreads, files, mpis, options, programs, settings
from tombolo.errors import UserError

TRANSPORT = "TOMBOLO_DSM_TRANSPORT"

app = typer.Typer(help="Programs on virtual shared memory.", no_args_is_help=True)
# A compiler takes all options itself, --help too.
OF_A_COMPILER = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@app.callback()
def main() -> None:
    """Programs on virtual shared memory."""


@app.command("run", context_settings=options.OF_PROGRAMS)
@options.of_table("dsm run")
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...")],
    *,
    given: settings.Given,
    mpi: Annotated[
        str | None,
        typer.Option(
            help=f"The launcher of this MPI starts the threads of the transport mpi: {options.MPIS}. [default: the "
            "first that is here]"
        ),
    ] = None,
    instructions: Annotated[
        str | None,
        typer.Option(
            "--atomic-instructions",
            help="A program of Pthreads with atomic instructions is refused where threads cache pages, or they are "
            "ignored: refuse | ignore. [default: refuse]",
        ),
    ] = None,
    show: options.Show = False,
    atomics: Annotated[str | None, options.renamed("--atomics", "--atomic-instructions")] = None,
) -> None:
    """Run PROGRAM in one process for each thread.

    It calls tombolo/dsm.h, or Pthreads alone: a Pthreads program runs as it is.
    """
    options.check_text(mpi=mpi)
    program = programs.locate(command[0])
    dsm_pthreads.check_is_no_script(program)
    programs.check_is_without_mpi(program, "tombolo dsm run")
    if instructions not in (None, "refuse", "ignore"):
        raise UserError(f"--atomic-instructions {instructions}: there are refuse and ignore")
    if mpi is not None:
        mpis.need(mpi)
    chosen = given.transport or os.environ.get(TRANSPORT) or "map"
    settings.check_choice(TRANSPORT, chosen)
    if given.trace is not None:
        options.check_replaces_no_program("--trace", given.trace, program)
        if chosen != "mpi":  # else the first process may be on another host
            files.check(Path(given.trace))
    unchanged = not programs.calls_dsm(program)
    if unchanged:
        dsm_pthreads.check(str(program))
    else:
        options.check_unused({"--atomic-instructions": instructions}, f"{program.name} calls tombolo/dsm.h")
        if chosen == "map":
            of_pages = given.by_flag("protocol", "cache")
            options.check_unused(of_pages, "all threads map the same pages; with --transport window each caches pages")
    check_of_transport(chosen, given, mpi, instructions)
    if unchanged and chosen != "map" and instructions != "ignore":
        dsm_atomics.check(program)
    if not show and (chosen == "mpi" or not unchanged):
        options.check_processes((given.n or 2) + dsm.memory_servers(given.servers))
    words = [str(program), *command[1:]]
    threads, others = given.n, given.but(n=None)
    if unchanged and chosen == "mpi":
        job = dsm_pthreads.mpi_job(words, threads, mpi=mpi, **others.values)
        start(job.argv, job.env, show)
    elif unchanged:
        start(command, dsm_pthreads.environment(**given.values), show, str(program))
    elif chosen == "mpi":
        job = dsm.mpi_job(others.but(transport=chosen), mpi, threads or 2, words)
        start(job.argv, job.env, show)
    else:
        start(dsm.command(threads or 2, words), dsm.environment(others), show)


def check_of_transport(transport: str, given: settings.Given, mpi: str | None, instructions: str | None) -> None:
    """A UserError for an option that this transport does not read. The program itself refuses those that contradict
    each other, as it does where the environment has them."""
    if transport == "window":
        options.check_readers([settings.machine(given.machine)], given.of_machines())
    else:
        options.check_unused(given.of_machines(), "it is for --transport window")
    if transport == "map":
        options.check_unused(
            {"--atomic-instructions": instructions}, "all threads map the same pages, as a Pthreads program does"
        )
    if transport == "mpi":
        other = None if given.machine == settings.machines()[0] else given.machine
        options.check_unused({"--machine": other}, "it is for --transport window")
    else:
        options.check_unused({"--mpi": mpi}, "it is for --transport mpi")


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
