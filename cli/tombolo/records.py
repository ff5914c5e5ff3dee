# SPDX-License-Identifier: Apache-2.0
"""Result files: JSON lines, the first of which names the host and the build of the others."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tombolo import __version__, host, paths
from tombolo.errors import UserError


def context(**more) -> dict:
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
        told = subprocess.run(
            ["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True
        )
    except FileNotFoundError:  # a checkout that was copied to a host without git
        return None
    return told.stdout.strip() or None


class Writer:
    """Appends records to a file as they come, so that an interrupted run keeps them."""

    def __init__(self, stem: str, **more) -> None:
        folder = paths.results()
        folder.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.path: Path = folder / f"{stem}-{stamp}.jsonl"
        self._file = self.path.open("w")
        self.write(context(**more))

    def write(self, record: dict) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()


def write_lines(values: list[dict], path: Path) -> None:
    """A line of JSON for each value, in a file that is made anew; `-`: on stdout."""
    text = "".join(json.dumps(value) + "\n" for value in values)
    if str(path) == "-":
        print(text, end="")
        return
    try:
        path.write_text(text)
    except OSError as mistake:
        raise UserError(f"{path}: {mistake.strerror}") from None
