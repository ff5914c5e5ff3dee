# SPDX-License-Identifier: Apache-2.0
"""Runs an unchanged threaded program with its threads in processes, by a library that is preloaded."""

import os
import re
import shutil
from pathlib import Path

from tombolo import dsm, dsm_atomics, launch, libraries, programs, settings
from tombolo.errors import UserError

LIBRARY = "libtombolo_pthread.so"
HOSTS = "libtombolo_pthread_hosts.so"  # which it loads with transport mpi
LAUNCHED = 8  # processes with transport mpi, if no number is given
PROCESSES = "TOMBOLO_DSM_PROCESSES"
OPENMP = re.compile(r"lib(gomp|omp|iomp5)\b.*\.so.*")
HEADER = 64  # bytes of the header of an ELF file of 64 bits; one of 32 bits has 52, and its program more
INTERPRETER = 3  # PT_INTERP of an ELF program header


def environment(processes: int | None = None, **given: object) -> dict[str, str]:
    """All of the environment. `processes`: at most so many at once; `given`: options of `tombolo dsm run`."""
    bound = {} if processes is None else {PROCESSES: str(processes)}
    return os.environ | _settings(dsm.Choice(**given)) | bound


def mpi_job(
    program: list[str],
    processes: int | None = None,
    memory: str | None = None,
    cache: str | None = None,
    stats: str | None = None,
    mpi: str | None = None,
    **given: object,
) -> launch.Job:
    """The same with transport mpi: by the launcher of an MPI, the first that this host has."""
    choice = dsm.Choice(**given | {"transport": "mpi", "memory": memory, "cache": cache, "stats": stats})
    libraries.need_program(HOSTS)
    all_of_them = (processes or LAUNCHED) + dsm.memory_servers(choice.servers)
    return launch.job(dsm.usable_mpi(mpi), all_of_them, program, None, extra=_settings(choice))


def _settings(choice: settings.Given) -> dict[str, str]:
    set_ones = choice.environment()
    if (choice.transport or os.environ.get("TOMBOLO_DSM_TRANSPORT")) in ("window", "mpi"):
        # Else each process stores the addresses of functions to a page of all of them.
        set_ones["LD_BIND_NOW"] = os.environ.get("LD_BIND_NOW", "1")
    return set_ones | {"LD_PRELOAD": launch.preload(library())}


def library() -> Path:
    """The one that is preloaded."""
    return libraries.need_program(LIBRARY)


def check(program: str) -> None:
    """A UserError for a program into which nothing can be preloaded."""
    path = shutil.which(program)
    if path is None:
        raise UserError(f"{program}: no such program")
    check_is_no_script(Path(path))
    with Path(path).open("rb") as file:
        head = file.read(4096)
    if len(head) < HEADER:
        raise UserError(f"{program} is no whole ELF program: its file ends within the header")
    if head[4] != 2:
        raise UserError(f"{program} is a program of 32 bits, which is not served")
    if not _has_interpreter(head):
        raise UserError(f"{program} is linked statically: no library can be preloaded into it")
    if os.stat(path).st_mode & 0o6000:
        raise UserError(f"{program} runs with another user's rights, so nothing is preloaded")
    for module in dsm_atomics.modules(Path(path)):
        if OPENMP.fullmatch(module.name):
            raise UserError(
                f"{program} has OpenMP's threads of {module.name}, which wait for each other by system calls of "
                "their own, not by Pthreads: in processes they would wait for ever"
            )


def check_is_no_script(program: Path) -> None:
    """A UserError for a file that is no ELF program: each process would run all of it."""
    if not programs.is_elf(program):
        raise UserError(
            f"{program} is no ELF program, but a script or the like: each process would run all of it. Name the "
            "program that it starts (of a language, its interpreter), or let it call `tombolo dsm run`"
        )


def _has_interpreter(head: bytes) -> bool:
    start = int.from_bytes(head[32:40], "little")
    size = int.from_bytes(head[54:56], "little")
    count = int.from_bytes(head[56:58], "little")
    types = [head[start + i * size : start + i * size + 4] for i in range(count)]
    return INTERPRETER.to_bytes(4, "little") in types
