# SPDX-License-Identifier: Apache-2.0
"""Configures and builds the test programs against one installed MPI."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from tombolo import files, host, paths
from tombolo.errors import UserError
from tombolo.mpis import Mpi, compiler, root_may_launch
from tombolo.suite import source

FOLDERS = ("rma", "errors/rma", "threads/rma")
STAMP = ".built"


def folder(mpi: Mpi) -> Path:
    return paths.cache() / "conformance" / mpi.key


def build(mpi: Mpi, say: Callable[[str], None]) -> Path:
    """The build folder, built if it is not yet; a program that does not compile is left out."""
    where = folder(mpi)
    stamp = where / STAMP
    if stamp.is_file() and stamp.read_text().strip() == mpi.label:
        return where
    suite = source.fetch()
    files.folder(where)
    say(f"configuring MPICH's test programs for {mpi.label}")
    configure = [
        str(suite / "configure"),
        "--disable-fortran",
        "--disable-cxx",
        "--disable-spawn",
        "--disable-ft-tests",
        "--enable-threads=multiple",
        f"MPICC={compiler(mpi)}",
        f"MPIEXEC={mpi.launcher}",
    ]
    _step(configure, where, "configure")
    say(f"building them (log: {paths.shown(where)}/*.log)")
    jobs = f"-j{host.cores()}"
    for part in ("util", "dtpools"):
        _step(["make", "-C", part, jobs], where, part)
    for part in FOLDERS:
        _step(["make", "-C", part, "-k", jobs], where, part, may_fail=True)
    files.write(stamp, mpi.label + "\n")
    return where


def _step(command: list[str], where: Path, name: str, may_fail: bool = False) -> None:
    log = where / f"log-{name.replace('/', '-')}.log"
    with log.open("w") as out:
        done = subprocess.run(command, cwd=where, stdout=out, stderr=subprocess.STDOUT, env=root_may_launch())
    if done.returncode != 0 and not may_fail:
        raise UserError(f"`{command[0]}` ended with {done.returncode}; its last lines are in {log}")
