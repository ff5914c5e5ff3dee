# SPDX-License-Identifier: Apache-2.0
"""Starts programs on virtual shared memory, and compiles them."""

import os

from tombolo import launch, libraries, mpis, settings
from tombolo.errors import UserError

LAUNCHER = "tombolo-dsm"
LIBRARY = "libtombolo_dsm.so"
SERVERS = "TOMBOLO_DSM_SERVERS"


class Choice(settings.Given):
    """How the program shall share memory: options of `tombolo dsm run`."""

    def __init__(self, **values: object) -> None:
        super().__init__("dsm run", **values)


def command(threads: int, program: list[str]) -> list[str]:
    """The command line that runs a program with so many threads."""
    return [str(libraries.need_program(LAUNCHER)), str(threads), *program]


def mpi_job(choice: settings.Given, mpi: str | None, threads: int, program: list[str]) -> launch.Job:
    """The same with transport mpi: by the launcher of an MPI, the first that this host has."""
    chosen = usable_mpi(mpi)
    given = choice.environment() | {"LD_LIBRARY_PATH": environment(choice)["LD_LIBRARY_PATH"]}
    return launch.job(chosen, threads + memory_servers(choice.servers), program, None, extra=given)


def memory_servers(asked: int | None) -> int:
    """Those that a launcher has to start besides the threads: `asked` for, or by the environment. The program
    tells of a number there that it does not take."""
    text = os.environ.get(SERVERS, "")
    if asked is None:
        asked = int(text) if text.isdecimal() else 0
    return asked if asked <= settings.row(SERVERS)["most"] else 0


def usable_mpi(key: str | None) -> mpis.Mpi:
    """The one that is named, or the first that this host has; our module for it is built."""
    chosen = mpis.need(key) if key else _first_mpi()
    libraries.need_program(f"libtombolo_dsm_{chosen.kind}.so")
    return chosen


def _first_mpi() -> mpis.Mpi:
    # One-sided operations of Open MPI 4, Debian's, fail where several threads call it.
    usable = [mpi for mpi in mpis.found() if mpi.kind == "mpich" or not mpi.version.startswith("4.")]
    if not usable:
        raise UserError(
            f"transport mpi needs MPICH or Open MPI 5, and this host has neither; to have one: {mpis.hint('mpich')}"
        )
    return usable[0]


def environment(choice: settings.Given) -> dict[str, str]:
    """All of it; the program finds our library, wherever it was linked."""
    folder = str(libraries.need_program(LIBRARY).parent)
    found = ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH", "")]))
    return os.environ | choice.environment() | {"LD_LIBRARY_PATH": found}


def flags() -> list[str]:
    """For a C compiler, behind the sources."""
    folder = libraries.need_program(LIBRARY).parent
    return [f"-I{libraries.include('tombolo/dsm.h')}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltombolo_dsm"]
