# SPDX-License-Identifier: Apache-2.0
"""The kind of a program, by its file and its libraries: for which command it is, the handle ABI that it speaks
and the MPI that it would load."""

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tombolo import dsm_atomics, hints, mpis, shared_libraries
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
# The runtime of families reads this setting; programs in C are linked to it as a library.
OF_FAMILIES = (b"TOMBOLO_SVP_WORKERS", b"libtombolo_svp_c.so")


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
        raise UserError(_lack_of(program))
    return Path(path).absolute()


def _lack_of(program: str) -> str:
    """Why no program is started by this word, and what to do."""
    if not program:
        return "PROGRAM is an empty word"
    if os.sep not in program:
        beside = f"; that of this folder is started as ./{program}" if os.path.isfile(program) else ""
        return f"no folder of PATH has a program '{program}'{beside}"
    try:
        os.stat(program)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(program):
            return f"{program} is a link to {os.readlink(program)}, which is not there"
        return f"there is no file {program}"
    except OSError as mistake:
        return f"{program} cannot be reached: {mistake.strerror}"
    if os.path.isdir(program):
        return f"{program} is a folder, not a program"
    return (
        f"{program} may not be executed: if it is a program or a script with its interpreter in the first line, "
        f"`chmod +x {program}` allows it"
    )


def start(argv: list[str], environment: dict[str, str], file: str | None = None) -> NoReturn:
    """Starts a program in the place of this process. `file`: the program, if argv[0] does not name it."""
    program = file or argv[0]
    sys.stdout.flush()
    try:
        os.execvpe(program, argv, environment)
    except OSError as mistake:
        why = mistake.strerror
        if mistake.errno == errno.ENOEXEC:
            why = "it is neither an ELF program of this processor nor a script with its interpreter in the first line"
        raise UserError(f"{program} cannot be started: {why}") from None


def is_elf(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except PermissionError:
        raise UserError(
            f"{program} may be executed and not read, and this command has to look into a program before it starts it"
        ) from None
    except OSError as mistake:
        raise UserError(f"{program} cannot be read: {mistake.strerror}") from None


def is_script(program: Path) -> bool:
    """Whether the kernel starts an interpreter for it."""
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def calls_dsm(program: Path) -> bool:
    """Whether a program is linked to the library of tombolo/dsm.h."""
    return b"libtombolo_dsm.so" in program.read_bytes()


def has_families(program: Path) -> bool:
    """Whether an ELF program, or a library that it is linked to, has the runtime of families."""
    return _names_families(program) or any(map(_names_families, dsm_atomics.modules(program)))


def _names_families(module: Path) -> bool:
    content = module.read_bytes()
    return any(name in content for name in OF_FAMILIES)


def is_of_families(word: str) -> bool:
    """Whether a word of a command line names a program of families."""
    path = shutil.which(word)
    return path is not None and os.access(path, os.R_OK) and is_elf(Path(path)) and has_families(Path(path))


def check_is_without_mpi(program: Path, command: str) -> None:
    """A UserError for a program that is linked to an MPI: `command` does not serve it."""
    if link := linked(program):
        raise UserError(
            f"{program} is an MPI program, linked to {link.soname}: {hints.RUN}, for `{command}` starts none of its "
            "processes as ranks"
        )


def linked(program: Path) -> Linked | None:
    """The first MPI that the program is linked to; None for scripts and interpreters."""
    if not is_elf(program):
        return None
    found = shared_libraries.of(program)
    return next((Linked(name, file) for name, file in found.items() if name in ABIS), None)


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
        f"to have one: {mpis.hint(DEFAULT_MPI[link.soname][0])}"
    )
