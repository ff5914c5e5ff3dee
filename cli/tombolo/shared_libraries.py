# SPDX-License-Identifier: Apache-2.0
"""The shared libraries of a program, as the loader finds them from the current folder and environment."""

import re
import subprocess
from pathlib import Path

from tombolo.errors import UserError

# A name that holds a slash has no arrow: the loader opens it as it is. Folders may have blanks.
FOUND = re.compile(r"^\s*(?:(.*?) => )?(\S.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
NOT_FOUND = re.compile(r"^\s*(\S.*) => not found$", re.MULTILINE)


def of(program: Path) -> dict[str, Path | None]:
    """Name -> file, None where the loader finds none; nothing for a file that it does not take."""
    try:
        return parsed(subprocess.run(["ldd", program], capture_output=True, text=True).stdout)
    except OSError as mistake:
        raise UserError(f"the libraries of {program.name} are not known: `ldd` of PATH: {mistake.strerror}") from None


def parsed(told: str) -> dict[str, Path | None]:
    """Of `ldd`'s lines."""
    found: dict[str, Path | None] = {}
    for line in told.splitlines():
        if match := NOT_FOUND.match(line):
            found[match[1]] = None
        elif (match := FOUND.match(line)) and "/" in match[2]:  # else the kernel's, which has no file
            found[match[1] or Path(match[2]).name] = Path(match[2])
    return found
