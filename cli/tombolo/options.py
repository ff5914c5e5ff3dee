# SPDX-License-Identifier: Apache-2.0
"""The options that several commands have, and the checks that they share: an option that would be ignored,
and a number that the host cannot serve, are refused by name before anything is built or started."""

import os
import re
import sys
from collections.abc import Collection, Mapping
from typing import Annotated

import typer

from tombolo import host, mpis, settings
from tombolo.errors import UserError

LARGEST = 2**64 - 1
MOST_PROCESSES = 4096  # of one program on this host: runtime/processes/launcher_command.cpp
MANY = 64  # processes for each processor, which take turns
# With one of these a launcher may start processes on other hosts, of which nothing is known here.
OF_OTHER_HOSTS = ("HYDRA_HOST_FILE", "SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS")
# The machine that alone reads an option.
READER = {
    "--seed": "stale",
    "--evictions": "stale",
    "--on-findings": "stale",
    "--pool": "flushed",
    "--atomics": "flushed",
}
SIZE = re.compile(r"[0-9]+([KMGT](iB)?|B)?")  # as dsm/memory/settings.h
MACHINES = settings.names(settings.MACHINE)
MACHINE_DEFAULT = f"[default: {settings.MACHINE}'s, else coherent]"
MPIS = " | ".join(mpis.KEYS)

Seed = Annotated[
    int | None,
    typer.Option(help="The machine stale draws its evictions from this number.", min=0, max=LARGEST),
]
Evictions = Annotated[
    int | None,
    typer.Option(
        help="The machine stale evicts a line in one of so many operations; 0 stands for never.", min=0, max=LARGEST
    ),
]
Pool = Annotated[
    str | None,
    typer.Option(help="The machine flushed maps this: a DAX device, a file or a directory.", metavar="PATH"),
]
Stats = Annotated[bool, typer.Option(help="Counts are printed on standard error at the end of the program.")]
Show = Annotated[bool, typer.Option(help="The command line is printed and not run.")]
# Options behind PROGRAM are the program's own; one in front of it that is unknown is a mistake.
OF_PROGRAMS = {"allow_interspersed_args": False}


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


def check_size(option: str, text: str | None) -> None:
    """A UserError for a text that is no size in bytes."""
    if text is not None and not SIZE.fullmatch(text):
        raise UserError(f"{option}: '{text}' is not a size; write it as 512MiB, 2GiB or 65536")


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


def check_processes(count: int, option: str = "-n") -> None:
    """A UserError for more processes than this host allows; a warning for so many that starting them takes long."""
    if any(os.environ.get(name) for name in OF_OTHER_HOSTS):
        return
    most, why = host.most_processes()
    if count >= most:  # the launcher is one as well
        raise UserError(f"{option} {count}: this host allows {most} processes in all ({why})")
    if count > MANY * host.cores():
        print(
            f"tombolo: {option} {count}: so many processes take turns on {host.cores()} processors, and "
            "to start them takes long",
            file=sys.stderr,
        )
