# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout if the command runs from one, else a folder of the user's."""

import os
import re
from pathlib import Path

from tombolo.errors import UserError

PACKAGE = Path(__file__).resolve().parent
DATA = PACKAGE / "data"
BUILD = "build/release"
CMAKE_HOME = re.compile(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", re.MULTILINE)


def checkout() -> Path | None:
    """The root of the source tree that this package lies in, or None when it is installed."""
    root = PACKAGE.parent.parent
    return root if (root / "CMakePresets.json").is_file() else None


def built() -> Path | None:
    """Where the checkout's `make` builds; None when installed, before the first build, and while
    another checkout's is there.

    A build folder that came as a copy or a link holds products of other sources.
    """
    root = checkout()
    if root is None:
        return None
    folder = root / BUILD
    try:
        source = CMAKE_HOME.search((folder / "CMakeCache.txt").read_text())
        return folder if source and root.samefile(source[1]) else None
    except OSError:
        return None


def home() -> Path:
    """Holds `.env`, `.cache` and `results`: $TOMBOLO_HOME, the checkout, or the user's cache."""
    if named := os.environ.get("TOMBOLO_HOME"):
        return Path(named).resolve()
    if root := checkout():
        return root
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise UserError(
            "this user has no home folder for results that are kept: name a folder by TOMBOLO_HOME"
        ) from None
    return Path(cache) / "tombolo"


def cache() -> Path:
    return home() / ".cache"


def results() -> Path:
    """Result files: $TOMBOLO_RESULTS, in the checkout, or the current folder."""
    if named := os.environ.get("TOMBOLO_RESULTS"):
        return Path(named).resolve()
    return (checkout() or Path.cwd()) / "results"


def shown(path: Path) -> str:
    """The path relative to the current folder; from `/` in full."""
    here = Path.cwd()
    inside = path.is_relative_to(here) and here != Path(here.anchor)
    return str(path.relative_to(here) if inside else path)
