# SPDX-License-Identifier: Apache-2.0
"""Compiles a C program with an MPI's own compiler wrapper: handles differ between MPIs."""

import subprocess
from pathlib import Path

from tombolo import places
from tombolo.faults import Fault
from tombolo.mpis import Mpi, compiler, root_may_launch

FLAGS = ["-O2", "-std=c11", "-Wall", "-Wextra"]


def compiled(mpi: Mpi, source: Path, into: Path) -> Path:
    """`into/<mpi>/<name>`, made anew when the source or the MPI is newer than it."""
    target = into / mpi.key / source.stem
    wrapper = compiler(mpi)
    newest = max(path.stat().st_mtime for path in (source, wrapper))
    if target.is_file() and target.stat().st_mtime > newest:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [wrapper, *FLAGS, source, "-o", target, "-lm"],
        capture_output=True,
        text=True,
        env=root_may_launch(),
    )
    if done.returncode != 0:
        raise Fault(f"{places.shown(source)} does not compile with {mpi.label}:\n{done.stderr}")
    return target


def examples() -> dict[str, Path]:
    """Name -> source of the examples in the checkout."""
    root = places.checkout()
    if root is None:
        raise Fault("the examples are in the source tree; run this from a checkout")
    return {path.stem: path for path in sorted((root / "examples").glob("*/*.c"))}


def example(mpi: Mpi, name: str) -> Path:
    known = examples()
    if name not in known:
        raise Fault(f"there is no example '{name}'; there are: {', '.join(known)}")
    return compiled(mpi, known[name], places.home() / "build" / "examples")


def benchmark(mpi: Mpi, name: str) -> Path:
    source = (places.checkout() or places.PACKAGE) / "bench" / f"{name}.c"
    if not source.is_file():
        raise Fault(f"{source} is not there; run this from a checkout")
    return compiled(mpi, source, places.home() / "build" / "bench")
