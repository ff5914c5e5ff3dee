# SPDX-License-Identifier: Apache-2.0
"""The parameter files of simulated chips, as far as this command needs them: the names of results,
and the parameters printed with them. The native program checks the files."""

import hashlib
import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tombolo import libraries, paths
from tombolo.errors import UserError

DEFAULT = "scc"
WORDS = ("name", "title", "base")


@dataclass(frozen=True)
class Parameter:
    name: str  # section.key; its last words are the unit
    value: object
    source: str


@dataclass(frozen=True)
class Chip:
    """A chip's parameters, those of its base included."""

    name: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def digest(self) -> str:
        """Differs where a value differs; titles and sources do not count."""
        values = {each.name: each.value for each in self.parameters}
        text = json.dumps(values, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def folder() -> Path:
    """Where chips are found by name: $TOMBOLO_CHIPS, the checkout, or beside the libraries."""
    if named := os.environ.get("TOMBOLO_CHIPS"):
        return Path(named)
    root = paths.checkout()
    return root / "backends/scc/chips" if root else libraries.folders()[0] / "chips"


def load(chip: str) -> Chip:
    """A chip by its name, or by the path of its file (with a slash or `.toml`)."""
    path = Path(chip) if "/" in chip or chip.endswith(".toml") else folder() / f"{chip}.toml"
    if path.name == f"{DEFAULT}.toml" and not path.exists():
        return Chip(DEFAULT)
    found = {each.name: each for each in _read(path, ())}
    return Chip(path.stem, tuple(found.values()))


def digest_with_others(chip: str) -> str:
    """Of a chip and of all that have a name: some experiments compare them with it."""
    digests = [load(chip).digest]
    for path in sorted(folder().glob("*.toml")):
        try:
            digests.append(load(path.stem).digest)
        except UserError:  # the command that needs this chip reports it
            digests.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:8]


def _read(path: Path, above: tuple[Path, ...]) -> list[Parameter]:
    """The parameters of a file behind those of its base."""
    if path in above:
        raise UserError(f"{path}: is its own base")
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as mistake:
        raise UserError(f"{path}: {mistake.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as mistake:
        raise UserError(f"{path}: {mistake}") from None
    base = tables.get("base")
    found = _read(path.parent / f"{base}.toml", (*above, path)) if isinstance(base, str) else []
    for section, keys in tables.items():
        if section not in WORDS and isinstance(keys, dict):
            found += [_parameter(f"{section}.{key}", leaf) for key, leaf in keys.items()]
    return found


def _parameter(name: str, leaf: object) -> Parameter:
    if isinstance(leaf, dict):
        return Parameter(name, leaf.get("value"), str(leaf.get("source", "")))
    return Parameter(name, leaf, "")
