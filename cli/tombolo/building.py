# SPDX-License-Identifier: Apache-2.0
"""Has make build missing parts of a checkout; its output is shown only where that fails."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tombolo.errors import UserError

LINES_SHOWN = 30
# Set by an outer make for an inner one: its options and targets are not for this build.
OUTER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


def build(what: str, root: Path, target: str, *settings: str) -> None:
    """Makes a target of the checkout; says so on stderr, as another program may read stdout."""
    print(f"building {what} (make {target}: cmake, some minutes) ...", file=sys.stderr, flush=True)
    env = {name: value for name, value in os.environ.items() if name not in OUTER_MAKE}
    try:
        done = subprocess.run(
            ["make", "-C", root, target, *settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
        )
    except OSError as mistake:
        raise UserError(f"{what} cannot be built: make: {mistake.strerror}") from None
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-LINES_SHOWN:])
        raise UserError(
            f"{what} cannot be built: `make {target}` ended with status {done.returncode}; "
            f"the end of its output:\n{end}"
        )


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """While no other command builds in this checkout."""
    (root / "build").mkdir(exist_ok=True)
    with (root / "build" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
