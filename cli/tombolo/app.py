# SPDX-License-Identifier: Apache-2.0
"""Puts the commands together; one file each in `commands/`.

A run of one command loads that one alone: all of them take three times as long as to start a program.
"""

import sys
from importlib import import_module

import typer

from tombolo import __version__, ending, files, options

COMMANDS = ("doctor", "run", "env", "build", "demo", "bench", "conformance", "scc", "dsm", "svp")
GROUPS = ("bench", "scc", "dsm", "svp")
SETTINGS = {"run": options.OF_PROGRAMS}
WIDTH = 120  # of the help, where the terminal has it


def made(commands: tuple[str, ...] = COMMANDS) -> typer.Typer:
    app = typer.Typer(
        help="Shared memory for programs on hardware without cache coherence: windows of MPI programs (run), virtual "
        "shared memory for threaded programs (dsm), and families of threads (svp).",
        context_settings={"max_content_width": WIDTH},
        rich_markup_mode=None,  # which takes "[default: ...]" for markup, and drops it
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(version)
    for name in commands:
        module = import_module(f"tombolo.commands.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(name, context_settings=SETTINGS.get(name))(getattr(module, name))
    return app


def version(
    show: bool = typer.Option(False, "--version", help="The version is printed, and nothing else is done."),
) -> None:
    if show:
        print(f"tombolo {__version__}")
        raise typer.Exit


def main() -> None:
    named = tuple(word for word in sys.argv[1:2] if word in COMMANDS)
    files.end_in_order()
    with ending.in_order("tombolo"):
        made(named or COMMANDS)(prog_name="tombolo")
