# SPDX-License-Identifier: Apache-2.0
"""The libraries of a program: the handle ABI that it speaks and the MPI that it would load."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tombolo import mpis
from tombolo.errors import UserError

# Library name -> handle ABI, that is which of our libraries goes in front.
ABIS = {
    "libmpi.so.12": "mpich",
    "libmpich.so.12": "mpich",
    "libmpi.so.40": "openmpi",
    "libmpi_abi.so.1": "abi",
}
DEFAULT_MPI = {
    "libmpi.so.12": ("mpich",),
    "libmpich.so.12": ("mpich-apt",),
    "libmpi.so.40": ("openmpi", "openmpi-apt"),
    "libmpi_abi.so.1": ("mpich",),
}
LDD_LINE = re.compile(r"^\s*(\S+) => (\S+|not found)")


@dataclass(frozen=True)
class Linked:
    """The MPI library that a program loads."""

    soname: str
    path: Path | None  # None: the loader does not find it

    @property
    def abi(self) -> str:
        return ABIS[self.soname]


def locate(program: str) -> Path:
    """The file that a shell would start, by its whole path: a Path forgets the ./ in front of a name."""
    path = shutil.which(program)
    if path is None:
        raise UserError(f"'{program}' is not a program that can be started from here")
    return Path(path).absolute()


def parse_ldd(text: str) -> Linked | None:
    """The first MPI library among `ldd`'s lines."""
    for line in text.splitlines():
        if (match := LDD_LINE.match(line)) and match[1] in ABIS:
            return Linked(match[1], Path(match[2]) if match[2] != "not" else None)
    return None


def linked(program: Path) -> Linked | None:
    """The MPI that the program is linked to; None for scripts and interpreters."""
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
    told = subprocess.run(["ldd", program], capture_output=True, text=True)
    return parse_ldd(told.stdout)


def python_abi(command: list[str]) -> str | None:
    """The ABI that mpi4py would load, when the command is a Python interpreter; else None."""
    if not Path(command[0]).name.startswith("python"):
        return None
    ask = (
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI;"
        "print(getattr(MPI, '__file__', ''), MPI.Get_library_version().splitlines()[0])"
    )
    told = subprocess.run([locate(command[0]), "-c", ask], capture_output=True, text=True)
    if told.returncode != 0:
        return None
    if "mpiabi" in told.stdout.lower() or "mpi_abi" in told.stdout.lower():
        return "abi"
    return "openmpi" if "Open MPI" in told.stdout else "mpich"


def mpi_of(link: Linked) -> mpis.Mpi:
    """The installed MPI whose library the program loads: its launcher is the one to use."""
    installed = mpis.found()
    if link.path:
        for mpi in installed:
            if mpi.prefix and link.path.resolve().is_relative_to(mpi.prefix.resolve()):
                return mpi
        kind = "openmpi" if link.abi == "openmpi" else "mpich"
        for mpi in installed:
            if mpi.prefix is None and mpi.kind == kind:
                return mpi
    for key in DEFAULT_MPI[link.soname]:
        for mpi in installed:
            if mpi.key == key:
                return mpi
    where = f" ({link.path})" if link.path else ""
    raise UserError(
        f"the program needs {link.soname}{where}, and no MPI with that library was found; "
        f"to have one: {mpis.HINTS[DEFAULT_MPI[link.soname][0]]}"
    )
