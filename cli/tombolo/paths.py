# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout if the command runs from one, else a folder of the user's."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
DATA = PACKAGE / "data"


def checkout() -> Path | None:
    """The root of the source tree that this package lies in, or None when it is installed."""
    root = PACKAGE.parent.parent
    return root if (root / "CMakePresets.json").is_file() else None


def home() -> Path:
    """Holds `.env`, `.cache` and `results`: $TOMBOLO_HOME, the checkout, or the user's cache."""
    if named := os.environ.get("TOMBOLO_HOME"):
        return Path(named).resolve()
    if root := checkout():
        return root
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tombolo"


def cache() -> Path:
    return home() / ".cache"


def results() -> Path:
    """Result files: $TOMBOLO_RESULTS, in the checkout, or where the user stands."""
    if named := os.environ.get("TOMBOLO_RESULTS"):
        return Path(named).resolve()
    return checkout() / "results" if checkout() else Path.cwd() / "results"


def shown(path: Path) -> str:
    """The path as a person standing here would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
