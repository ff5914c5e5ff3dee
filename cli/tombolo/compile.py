# SPDX-License-Identifier: Apache-2.0
"""Compiles a C program with an MPI's own compiler wrapper: handles differ between MPIs."""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tombolo import files, paths
from tombolo.errors import UserError
from tombolo.mpis import Mpi, compiler, root_may_launch

FLAGS = ["-O2", "-std=c11", "-Wall", "-Wextra"]


def compiled(mpi: Mpi, source: Path, into: Path, options: Sequence[str] = ()) -> Path:
    """`into/<mpi>/<name>`, made anew unless it was made from this.

    The folder may have come from another checkout, or serve several: the time of a file says nothing.
    """
    target = into / mpi.key / source.stem
    wrapper = compiler(mpi)
    inputs = _digest(source, wrapper, options)
    made_from = target.with_name(f".{source.stem}.inputs")  # hidden: a program may have a file of inputs
    if target.is_file() and made_from.is_file() and made_from.read_text() == inputs:
        return target
    files.folder(target.parent)
    with files.replaced(target) as fresh:
        done = subprocess.run(
            [wrapper, *FLAGS, *options, source, "-o", fresh, "-lm"],
            capture_output=True,
            text=True,
            env=root_may_launch(),
        )
        if done.returncode != 0:
            raise UserError(f"{paths.shown(source)} does not compile with {mpi.label}:\n{done.stderr}")
        made_from.unlink(missing_ok=True)
    files.write(made_from, inputs)
    return target


def _digest(source: Path, wrapper: Path, options: Sequence[str]) -> str:
    """A digest of the inputs: the source and the headers beside it, the MPI, the options."""
    digest = hashlib.sha256()
    for path in (source, *sorted(source.parent.glob("*.h"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    made = wrapper.stat()
    digest.update(repr([str(wrapper), made.st_mtime_ns, *FLAGS, *map(str, options)]).encode())
    return digest.hexdigest()


def sources(what: str) -> Path:
    """The source tree, which has the `what`; a UserError where there is none."""
    if root := paths.checkout():
        return root
    raise UserError(f"the {what} are in the source tree; run this from a checkout")


def examples() -> dict[str, Path]:
    """Name -> source of the examples in the checkout."""
    root = sources("examples")
    found = sorted((root / "examples").glob("*/*.c"))
    return {path.stem: path for path in found if path.parent.name != "svp"}  # those have no MPI


def source_of(name: str) -> Path:
    """The source of an example; a UserError for a name that is none."""
    known = examples()
    if name not in known:
        raise UserError(f"there is no example '{name}'; there are: {', '.join(known)}")
    return known[name]


def example(mpi: Mpi, name: str) -> Path:
    # Reports of `stale` name lines.
    return compiled(mpi, source_of(name), paths.home() / "build" / "examples", ["-g"])


def benchmark(mpi: Mpi, name: str) -> Path:
    root = sources("benchmarks")
    options = [f"-I{root}"]  # headers are named from there
    return compiled(mpi, root / "bench" / f"{name}.c", paths.home() / "build" / "bench", options)
