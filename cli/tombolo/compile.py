# SPDX-License-Identifier: Apache-2.0
"""Compiles a C program with an MPI's own compiler wrapper: handles differ between MPIs."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tombolo import paths
from tombolo.errors import UserError
from tombolo.mpis import Mpi, compiler, root_may_launch

FLAGS = ["-O2", "-std=c11", "-Wall", "-Wextra"]


def compiled(mpi: Mpi, source: Path, into: Path, options: Sequence[str] = ()) -> Path:
    """`into/<mpi>/<name>`, made anew when the source, a header beside it or the MPI is newer."""
    target = into / mpi.key / source.stem
    wrapper = compiler(mpi)
    newest = max(p.stat().st_mtime for p in (source, wrapper, *source.parent.glob("*.h")))
    if target.is_file() and target.stat().st_mtime > newest:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [wrapper, *FLAGS, *options, source, "-o", target, "-lm"],
        capture_output=True,
        text=True,
        env=root_may_launch(),
    )
    if done.returncode != 0:
        raise UserError(f"{paths.shown(source)} does not compile with {mpi.label}:\n{done.stderr}")
    return target


def examples() -> dict[str, Path]:
    """Name -> source of the examples in the checkout."""
    root = paths.checkout()
    if root is None:
        raise UserError("the examples are in the source tree; run this from a checkout")
    return {path.stem: path for path in sorted((root / "examples").glob("*/*.c"))}


def example(mpi: Mpi, name: str) -> Path:
    known = examples()
    if name not in known:
        raise UserError(f"there is no example '{name}'; there are: {', '.join(known)}")
    return compiled(mpi, known[name], paths.home() / "build" / "examples")


def benchmark(mpi: Mpi, name: str) -> Path:
    source = (paths.checkout() or paths.PACKAGE) / "bench" / f"{name}.c"
    if not source.is_file():
        raise UserError(f"{source} is not there; run this from a checkout")
    return compiled(mpi, source, paths.home() / "build" / "bench")
