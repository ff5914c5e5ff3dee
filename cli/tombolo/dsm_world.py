# SPDX-License-Identifier: Apache-2.0
"""Runs an unchanged threaded program with its threads in processes, by a library that is preloaded."""

import os
import shutil
from pathlib import Path

from tombolo import libraries
from tombolo.errors import UserError
from tombolo.launch import preload

LIBRARY = "libtombolo_pthread.so"
INTERPRETER = 3  # PT_INTERP of an ELF program header


def environment(
    processes: int | None = None,
    heap: str | None = None,
    transport: str | None = None,
    machine: str | None = None,
    cache: str | None = None,
    stats: str | None = None,
    trace: str | None = None,
) -> dict[str, str]:
    """All of the environment. `processes`: at most so many at once; `heap`, `cache`: as 2GiB; `stats`: text or json;
    `trace`: a path."""
    given = {
        "TOMBOLO_DSM_PROCESSES": processes,
        "TOMBOLO_DSM_HEAP": heap,
        "TOMBOLO_DSM_TRANSPORT": transport,
        "TOMBOLO_MACHINE": machine,
        "TOMBOLO_DSM_CACHE": cache,
        "TOMBOLO_STATS": stats,
        "TOMBOLO_DSM_TRACE": trace,
    }
    set_ones = {name: str(value) for name, value in given.items() if value is not None}
    environment = os.environ | set_ones
    if environment.get("TOMBOLO_DSM_TRANSPORT") == "window":
        # Else each process stores the addresses of functions to a page of all of them.
        environment.setdefault("LD_BIND_NOW", "1")
    return environment | {"LD_PRELOAD": preload(libraries.need_program(LIBRARY))}


def check(program: str) -> None:
    """A UserError for a program into which nothing can be preloaded."""
    path = shutil.which(program)
    if path is None:
        raise UserError(f"{program}: no such program")
    with open(path, "rb") as file:
        head = file.read(4096)
    if head[:4] != b"\x7fELF":
        raise UserError(f"{program} is a script: name the program that it starts")
    if head[4] != 2:
        raise UserError(f"{program} is a program of 32 bits, which is not served")
    if not _has_interpreter(head):
        raise UserError(f"{program} is linked statically: no library can be preloaded into it")
    if os.stat(path).st_mode & 0o6000:
        raise UserError(f"{program} runs with another user's rights, so nothing is preloaded")


def is_unchanged(program: Path) -> bool:
    """Whether it is an ELF program that is not linked to the library of tombolo/dsm.h."""
    content = program.read_bytes()
    return content[:4] == b"\x7fELF" and b"libtombolo_dsm.so" not in content


def _has_interpreter(head: bytes) -> bool:
    start = int.from_bytes(head[32:40], "little")
    size = int.from_bytes(head[54:56], "little")
    count = int.from_bytes(head[56:58], "little")
    types = [head[start + i * size : start + i * size + 4] for i in range(count)]
    return INTERPRETER.to_bytes(4, "little") in types
