# SPDX-License-Identifier: Apache-2.0
"""Starts programs on virtual shared memory, and compiles them."""

import os
from dataclasses import dataclass

from tombolo import launch, libraries, mpis
from tombolo.errors import UserError

LAUNCHER = "tombolo-dsm"
LIBRARY = "libtombolo_dsm.so"
MOST_SERVERS = 4096  # memory servers


@dataclass(frozen=True)
class Choice:
    """How the program shall share memory. None stands for the environment's, or the default."""

    transport: str | None = None
    protocol: str | None = None
    machine: str | None = None
    memory: str | None = None
    cache: str | None = None
    stats: str | None = None  # text or json
    trace: str | None = None  # a path
    servers: int | None = None  # memory servers
    seed: int | None = None
    evictions: int | None = None
    pool: str | None = None

    def of_machine(self) -> dict[str, str]:
        """The settings that single machines read."""
        given = {
            "TOMBOLO_SEED": self.seed,
            "TOMBOLO_EVICTIONS": self.evictions,
            "TOMBOLO_POOL": self.pool,
        }
        return {name: str(value) for name, value in given.items() if value is not None}

    def environment(self) -> dict[str, str]:
        given = {
            "TOMBOLO_DSM_TRANSPORT": self.transport,
            "TOMBOLO_DSM_PROTOCOL": self.protocol,
            "TOMBOLO_MACHINE": self.machine,
            "TOMBOLO_DSM_MEMORY": self.memory,
            "TOMBOLO_DSM_CACHE": self.cache,
            "TOMBOLO_STATS": self.stats,
            "TOMBOLO_DSM_TRACE": self.trace,
            "TOMBOLO_DSM_SERVERS": self.servers,
        }
        set_ones = {name: str(value) for name, value in given.items() if value is not None}
        return set_ones | self.of_machine()


def command(threads: int, program: list[str]) -> list[str]:
    """The command line that runs a program with so many threads."""
    return [str(libraries.need_program(LAUNCHER)), str(threads), *program]


def mpi_job(choice: Choice, mpi: str | None, threads: int, program: list[str]) -> launch.Job:
    """The same with transport mpi: by the launcher of an MPI, the first that this host has."""
    chosen = usable_mpi(mpi)
    given = choice.environment() | {"LD_LIBRARY_PATH": environment(choice)["LD_LIBRARY_PATH"]}
    return launch.job(chosen, threads + memory_servers(choice.servers), program, None, extra=given)


def memory_servers(asked: int | None) -> int:
    """Those that a launcher has to start besides the threads: `asked` for, or by the environment. Of a
    number there that the program does not take it tells."""
    text = os.environ.get("TOMBOLO_DSM_SERVERS", "")
    if asked is None:
        asked = int(text) if text.isdecimal() else 0
    return asked if asked <= MOST_SERVERS else 0


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
            "transport mpi needs MPICH or Open MPI 5, and this host has neither; to have one: "
            f"{mpis.hint('mpich')}"
        )
    return usable[0]


def environment(choice: Choice) -> dict[str, str]:
    """All of it; the program finds our library, wherever it was linked."""
    folder = str(libraries.need_program(LIBRARY).parent)
    found = ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH", "")]))
    return os.environ | choice.environment() | {"LD_LIBRARY_PATH": found}


def flags() -> list[str]:
    """For a C compiler, behind the sources."""
    folder = libraries.need_program(LIBRARY).parent
    return [f"-I{libraries.include('tombolo/dsm.h')}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltombolo_dsm"]
