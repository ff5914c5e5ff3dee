# SPDX-License-Identifier: Apache-2.0
"""The settings of a user, listed by the program `tombolo-settings`: the libraries' own table."""

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

from tombolo import libraries, paths
from tombolo.errors import UserError

PROGRAM = "tombolo-settings"
MACHINE = "TOMBOLO_MACHINE"
PAGE = "docs/settings.md"


@cache
def table() -> dict:
    """{"options": [...], "machines": [...], "lock_families": [...]}; built if it is not there."""
    return _table_of(libraries.need_program(PROGRAM))


@cache
def choices(variable: str) -> tuple[str, ...]:
    """The values that a variable may have, of a machine the default first. Nothing is built for them: before
    the first build, the page that the program has written tells them."""
    root = paths.checkout()
    if root is None or libraries.find_program(PROGRAM):
        rows = [row for row in table()["options"] if row.get("variable") == variable]
        found = rows[0]["choices"] if rows else ()
    else:
        found = _choices_of_page(root / PAGE, variable)
    if not found:
        raise UserError(f"{variable} is not a setting of these libraries that has a list of values")
    return tuple(found)


def names(variable: str) -> str:
    """The same as a text for `--help`, which no lack may keep from being shown."""
    try:
        return " | ".join(choices(variable))
    except UserError:
        return f"see {PAGE}"


def machines() -> tuple[str, ...]:
    """The machines that MPI programs may choose, the default first."""
    return choices(MACHINE)


def machine(option: str | None) -> str:
    """The machine that a program will run on: the option's, the environment's, or the default. A UserError
    if that is none."""
    if option is not None:
        check_machine(option)
        return option
    named = os.environ.get(MACHINE)
    if not named:
        return machines()[0]
    if named not in machines():
        raise UserError(f"{MACHINE} is '{named}', which is not a machine; choose of {', '.join(machines())}")
    return named


def check_machine(name: str, *others: str) -> None:
    """A UserError if `name` is no machine, nor one of `others`."""
    known = (*machines(), *others)
    if name not in known:
        raise UserError(f"'{name}' is not a machine; choose of {', '.join(known)}")


def check_choice(variable: str, text: str | None) -> None:
    """A UserError if the variable may not have this value; None stands for none."""
    if text is not None and text not in choices(variable):
        raise UserError(f"'{text}' is not a value of {variable}; choose of {', '.join(choices(variable))}")


def _table_of(program: Path) -> dict:
    try:
        told = subprocess.run([program, "--json"], capture_output=True, text=True)
    except OSError as mistake:
        raise UserError(f"{program} cannot be started: {mistake.strerror}") from None
    try:
        return json.loads(told.stdout)
    except ValueError:
        raise UserError(f"{program} --json does not print a table: {told.stderr[-200:]}") from None


def _choices_of_page(page: Path, variable: str) -> list[str]:
    """The third cell of the variable's row."""
    try:
        lines = page.read_text().splitlines()
    except OSError as mistake:
        raise UserError(f"{paths.shown(page)} cannot be read: {mistake.strerror}") from None
    rows = [line.split("|") for line in lines if line.startswith(f"| `{variable}` |")]
    return re.findall(r"`([^`]+)`", rows[0][3]) if rows else []
