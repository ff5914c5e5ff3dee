# SPDX-License-Identifier: Apache-2.0
"""The options that several commands have, and the checks that they share: an option that would be ignored,
and a number that the host cannot serve, are refused by name before anything is built or started."""

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any

import typer

from tombolo import host, mpis, settings
from tombolo.errors import UserError

LARGEST = 2**64 - 1
MOST_PROCESSES = 4096  # of one program on this host: runtime/processes/launcher_command.cpp
MANY = 64  # processes for each processor, which take turns
# With one of these a launcher may start processes on other hosts, of which nothing is known here.
OF_OTHER_HOSTS = ("HYDRA_HOST_FILE", "SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS")
# The machine that alone reads an option.
READER = {row["flag"]: row["machine"] for row in settings.rows() if "machine" in row}
MACHINES = settings.names(settings.MACHINE)
MPIS = " | ".join(mpis.KEYS)

Show = Annotated[bool, typer.Option(help="The command line is printed and not run.")]


def renamed(old: str, new: str) -> typer.models.OptionInfo:
    """An option that is called otherwise now: it is refused with its new name, and not in the help."""

    def refuse(text: str | None) -> None:
        if text is not None:
            raise UserError(f"{old} is called {new}")

    return typer.Option(old, hidden=True, callback=refuse)


FormerRanks = Annotated[str | None, renamed("--ranks", "-n")]

# Options behind PROGRAM are the program's own; one in front of it that is unknown is a mistake.
OF_PROGRAMS = {"allow_interspersed_args": False}


def of_table(command: str) -> Callable:
    """For the function of a command: the options that the table has for it stand in the place of its parameter
    `given`, a settings.Given, which has been checked."""

    def decorate(function: Callable) -> Callable:
        rows = settings.flags(command)

        @functools.wraps(function)
        def run(**values: object) -> None:
            own = {name: values.pop(name) for name in rows}
            given = settings.Given(command, **{name: _value(rows[name], value) for name, value in own.items()})
            given.check()
            function(**values, given=given)

        parameters = inspect.signature(function).parameters.values()
        made: Any = run  # a type of functions has no such member
        made.__signature__ = inspect.Signature([each for one in parameters for each in _parameters(one, rows, command)])
        made.__annotations__ = {}
        return made

    return decorate


def _parameters(one: inspect.Parameter, rows: Mapping[str, dict], command: str) -> Iterator[inspect.Parameter]:
    if one.name != "given":
        yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    for name, row in rows.items():
        made: object = Annotated[_kind(row), _option(row, command)]
        default = False if "word" in row else None
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=made)


def _kind(row: dict) -> object:
    if "word" in row:
        return bool
    return int | None if row["type"] == "number" else str | None


def _option(row: dict, command: str) -> typer.models.OptionInfo:
    letter = () if row["flag"].startswith("--") else (row["flag"],)  # else the parser makes it of the name
    if row["type"] == "number":
        least = max(1, row.get("least", 0) - row["more"]) if "more" in row else row.get("least", 0)
        return typer.Option(*letter, help=_help(row, command), min=least, max=row.get("most", LARGEST))
    metavar = {"size": "SIZE", "path": "PATH"}.get(row["type"]) if "word" not in row else None
    return typer.Option(*letter, help=_help(row, command), metavar=metavar)


def _help(row: dict, command: str) -> str:
    sentence = row["help"][command].replace("{choices}", settings.names(row["variable"]))
    sentence = sentence.replace("{more}", str(row.get("more")))
    usual = row.get("unset", row.get("default"))
    if usual is None or "word" in row:
        return sentence
    return f"{sentence} [default: {row['variable']}'s, else {usual}]"


def _value(row: dict, value: object) -> object:
    return (row["word"] if value else None) if "word" in row else value


def check_readers(machines: Collection[str], given: Mapping[str, object]) -> None:
    """A UserError for an option that none of the machines reads; None stands for one that was not given."""
    for option in (name for name, value in given.items() if value is not None):
        reader = READER[option]
        if reader not in machines:
            raise UserError(
                f"{option} is read by the machine {reader} alone, and this would run on {' and '.join(machines)}: "
                f"add --machine {reader}, or leave {option} out"
            )


def check_unused(given: Mapping[str, object], why: str) -> None:
    """A UserError for the first option that was given, though nothing reads it, with the reason."""
    for option in (name for name, value in given.items() if value is not None and value is not False):
        raise UserError(f"{option} has no effect here: {why}")


def check_text(**given: str | None) -> None:
    """A UserError for an option with an empty word."""
    for name, text in given.items():
        if text is not None and not text:
            raise UserError(f"--{name.replace('_', '-')} was given an empty word")


def check_replaces_no_program(option: str, path: os.PathLike[str] | str, program: os.PathLike[str]) -> None:
    """A UserError for a file to write that is the program's own."""
    if os.path.realpath(path) == os.path.realpath(program):
        raise UserError(f"{option} {path} would replace the program")


def check_seconds(option: str, seconds: float | None) -> None:
    """A UserError for seconds that are none: also nan and inf are numbers for the parser."""
    if seconds is not None and not 0 < seconds < 1e9:
        raise UserError(f"{option} {seconds:g}: that is no number of seconds above 0")


def check_pattern(option: str, pattern: str | None) -> None:
    """A UserError for a text that is no regular expression."""
    try:
        re.compile(pattern or "")
    except re.error as mistake:
        raise UserError(f"{option}: '{pattern}' is not a regular expression: {mistake}") from None


def check_processes(count: int) -> None:
    """A UserError for more processes than this host allows; a warning for so many that starting them takes long."""
    if any(os.environ.get(name) for name in OF_OTHER_HOSTS):
        return
    most, why = host.most_processes()
    if count >= most:  # the launcher is one as well
        raise UserError(f"-n {count}: this host allows {most} processes in all ({why})")
    if count > MANY * host.cores():
        print(
            f"tombolo: -n {count}: so many processes take turns on {host.cores()} processors, and "
            "to start them takes long",
            file=sys.stderr,
        )
