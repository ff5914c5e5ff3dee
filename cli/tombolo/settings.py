# SPDX-License-Identifier: Apache-2.0
"""The options of a user, by the table that the libraries are built from (base/options.toml): nothing is built or
started to know them. The libraries judge the values; here are the checks of types and names, which the table
tells."""

import os
import re
import tomllib
from functools import cache
from typing import Any

from tombolo import paths
from tombolo.errors import UserError

MACHINE = "TOMBOLO_MACHINE"
SWITCH = ("on", "off")
SIZE = re.compile(r"[0-9]+([KMGT](iB)?|B)?")  # as bytes_in() of base/options.h


@cache
def rows() -> tuple[dict, ...]:
    """The rows of the table, in its order."""
    root = paths.checkout()
    path = root / "base/options.toml" if root else paths.DATA / "options.toml"
    try:
        return tuple(tomllib.loads(path.read_text())["option"])
    except OSError as mistake:
        raise UserError(f"{paths.shown(path)} cannot be read: {mistake.strerror}") from None


def row(variable: str) -> dict:
    return next(each for each in rows() if each.get("variable") == variable)


def flags(command: str) -> dict[str, dict]:
    """The rows of the options that a command has, by the names of their flags without dashes in front. Those of one
    letter are first."""
    own = [each for each in rows() if command in each.get("help", ())]
    return {name_of(each): each for each in sorted(own, key=lambda row: row["flag"].startswith("--"))}


def name_of(row: dict) -> str:
    """`on_findings` of --on-findings."""
    return row["flag"].lstrip("-").replace("-", "_")


def told(row: dict, value: object) -> str:
    """The text that the variable gets for a value of the flag."""
    return str(min(value + row["more"], row["most"]) if "more" in row and isinstance(value, int) else value)


def choices(variable: str) -> tuple[str, ...]:
    """The values that a variable may have, of a machine the default first."""
    found = row(variable)
    return tuple(found.get("choices") or (SWITCH if found["type"] == "switch" else ()))


def names(variable: str) -> str:
    """The same as a text for `--help`."""
    return " | ".join(choices(variable))


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


def check(row: dict, text: str) -> None:
    """A UserError for a text that the type of the option does not allow."""
    if row["variable"] == MACHINE:
        check_machine(text)
    elif row["type"] in ("choice", "switch"):
        check_choice(row["variable"], text)
    elif row["type"] == "size" and not SIZE.fullmatch(text):
        raise UserError(f"{row['flag']}: '{text}' is not a size; write it as 512MiB, 2GiB or 65536")
    elif not text:
        raise UserError(f"{row['flag']} was given an empty word")


class Given:
    """Options of a command, by the names of their flags. None stands for one that was not given: then the
    environment's value holds, or the default."""

    def __init__(self, command: str, **values: object) -> None:
        self._rows = flags(command)
        if unknown := values.keys() - self._rows.keys():
            raise TypeError(f"tombolo {command} has no option {', '.join(sorted(unknown))}")
        self.values: dict[str, Any] = {name: value for name, value in values.items() if value is not None}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._rows:
            raise AttributeError(name)
        return self.values.get(name)

    def but(self, **values: object) -> "Given":
        """The same with other values."""
        other = object.__new__(Given)
        merged = self.values | values
        other._rows, other.values = self._rows, {name: merged[name] for name in merged if merged[name] is not None}
        return other

    def check(self) -> None:
        """A UserError for a value that the type of its option does not allow."""
        for name, value in self.values.items():
            if isinstance(value, str) and "word" not in self._rows[name]:
                check(self._rows[name], value)

    def by_flag(self, *names: str) -> dict[str, object]:
        """The values of these options, of all if none is named."""
        return {self._rows[name]["flag"]: self.values.get(name) for name in names or self._rows}

    def of_machines(self) -> dict[str, object]:
        """Those of the options that single machines read."""
        return self.by_flag(*(name for name, row in self._rows.items() if "machine" in row))

    def environment(self) -> dict[str, str]:
        return {self._rows[name]["variable"]: told(self._rows[name], value) for name, value in self.values.items()}
