# SPDX-License-Identifier: Apache-2.0
"""The settings of a user, listed by the program `tombolo-settings`: the libraries' own table."""

import json
import subprocess
from functools import cache

from tombolo import libraries
from tombolo.errors import UserError

PROGRAM = "tombolo-settings"


@cache
def table() -> dict:
    """{"options": [...], "machines": [...], "lock_families": [...]}; built if it is not there."""
    program = libraries.need_program(PROGRAM)
    told = subprocess.run([program, "--json"], capture_output=True, text=True)
    try:
        return json.loads(told.stdout)
    except ValueError:
        raise UserError(f"{program} --json does not print a table: {told.stderr[-200:]}") from None


def machines() -> tuple[str, ...]:
    """The machines that MPI programs may choose, the default first."""
    return tuple(table()["machines"])


def check_machine(name: str, *others: str) -> None:
    """A UserError if `name` is no machine, nor one of `others`."""
    known = (*machines(), *others)
    if name not in known:
        raise UserError(f"'{name}' is not a machine; choose of {', '.join(known)}")


def check_choice(variable: str, text: str | None) -> None:
    """A UserError if the variable may not have this value; None stands for none."""
    if text is None:
        return
    rows = [row for row in table()["options"] if row.get("variable") == variable]
    if not rows:
        raise UserError(f"{variable} is not a setting of these libraries")
    choices = rows[0]["choices"]
    if text not in choices:
        raise UserError(f"'{text}' is not a value of {variable}; choose of {', '.join(choices)}")
