# SPDX-License-Identifier: Apache-2.0
"""Puts the commands together; one file each in `commands/`.

A run of one command loads that one alone: all of them take three times as long as to start a program.
"""

import sys
from importlib import import_module

import typer

from tombolo import __version__
from tombolo.errors import UserError

COMMANDS = ("doctor", "run", "env", "build", "demo", "bench", "conformance", "scc", "dsm", "svp")
GROUPS = ("bench", "scc", "dsm", "svp")
SETTINGS = {"run": {"ignore_unknown_options": True, "allow_interspersed_args": False}}


def made(commands: tuple[str, ...] = COMMANDS) -> typer.Typer:
    app = typer.Typer(
        help="One-sided MPI programs over memory without cache coherence.",
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
    show: bool = typer.Option(False, "--version", help="Print the version and end."),
) -> None:
    if show:
        print(f"tombolo {__version__}")
        raise typer.Exit()


def main() -> None:
    named = tuple(word for word in sys.argv[1:2] if word in COMMANDS)
    try:
        made(named or COMMANDS)(prog_name="tombolo")
    except UserError as error:
        print(f"tombolo: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
