# SPDX-License-Identifier: Apache-2.0
"""Result files: JSON lines, the first of which names the host and the build of the others."""

import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tombolo import __version__, files, host, paths


def context(**more: object) -> dict:
    """The facts needed to judge or repeat the run."""
    return {
        "kind": "context",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "commit": commit(),
        "command": " ".join(sys.argv[1:]),
        "cpu": host.cpu_name(),
        "cores": host.cores(),
        "kernel": os.uname().release,
        "load": os.getloadavg()[0],
        **more,
    }


def commit() -> str | None:
    root = paths.checkout()
    if root is None:
        return None
    try:
        told = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True)
    except FileNotFoundError:  # a checkout that was copied to a host without git
        return None
    return told.stdout.strip() or None


class Writer:
    """Appends records to a file as they come, so that an interrupted run keeps them."""

    def __init__(self, stem: str, **more: object) -> None:
        folder = files.folder(paths.results())
        stamp = time.strftime("%Y%m%d-%H%M%S")
        names = (f"{stem}-{stamp}{more_than_one}.jsonl" for more_than_one in _numbers())
        self.path: Path = next(path for name in names if files.new(path := folder / name))
        self.write(context(**more))

    def write(self, record: dict) -> None:
        files.append(self.path, json.dumps(record) + "\n")


def _numbers() -> Iterator[str]:
    """For the names of files: another command may have begun in the same second."""
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))


def check_lines(path: Path | None) -> None:
    """A UserError where `write_lines` cannot write to a path; before a command measures."""
    if path is not None and str(path) != "-":
        files.check(path)


def write_lines(values: list[dict], path: Path) -> None:
    """A line of JSON for each value, in a file that is made anew; `-`: on stdout."""
    text = "".join(json.dumps(value) + "\n" for value in values)
    if str(path) == "-":
        print(text, end="")
    else:
        files.write(path, text)


def check_numbers(record: dict, *names: str) -> None:
    """A ValueError that names the first of these fields that is no number; a KeyError for one that lacks."""
    for name in names:
        if not is_number(record[name]):
            raise ValueError(f"{name} is {json.dumps(record[name])}, which is no number")


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
