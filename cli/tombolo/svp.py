# SPDX-License-Identifier: Apache-2.0
"""Starts programs of families, and says how they are compiled."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tombolo import files, launch, libraries, mpis, paths, settings
from tombolo.errors import UserError

LAUNCHER = "tombolo-svp"  # of processes that find each other
ARCHIVE = "libtombolo_families.a"
LIBRARY_OF_C = "libtombolo_svp_c.so"
FLAGS = "tombolo_families.flags"
GRACE_SECONDS = 2  # for a launcher that is asked to end


class Choice(settings.Given):
    """How the families shall run: options of `tombolo svp run`."""

    def __init__(self, **values: object) -> None:
        super().__init__("svp run", **values)


def command(processes: int, program: list[str]) -> list[str]:
    """The command line that runs a program in so many processes: one runs it, as it is."""
    if processes == 1:
        return program
    return [str(libraries.need_program(LAUNCHER)), str(processes), *program]


def mpi_job(choice: settings.Given, mpi: str, processes: int, program: list[str]) -> launch.Job:
    """The same by the launcher of an MPI, which may start them on several hosts."""
    chosen = mpis.need(mpi)
    libraries.need_program(f"libtombolo_svp_{chosen.kind}.so")
    return launch.job(chosen, processes, program, None, extra=choice.environment())


def started_by_an_mpi() -> bool:
    """Whether the launcher of an MPI has started this process as one of several."""
    sizes = (os.environ.get(name, "") for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"))
    return any(size.isdecimal() and int(size) > 1 for size in sizes)


def environment(choice: settings.Given) -> dict[str, str]:
    """All of it."""
    inherited = {name: text for name, text in os.environ.items() if name != "TOMBOLO_DSM_SERVERS"}
    return inherited | choice.environment()


class Parts:
    """The traces of several processes, in a folder of this run alone, and the one that is made of them. The
    folder is beside that one: processes of other hosts see it where they see the trace."""

    def __init__(self, trace: Path, processes: int) -> None:
        self._trace, self._folder = trace, files.beside(trace.absolute())
        self.path = self._folder / "trace"  # of the processes' setting: each puts its number behind
        self._parts = [self.path.with_name(f"trace.{rank}") for rank in range(processes)]

    def run(self, argv: list[str], env: dict[str, str]) -> int:
        """Runs the processes, and makes the trace. The status of the command."""
        with files.own_folder(self._folder):
            status = ended(argv, env)
            there = [part for part in self._parts if part.is_file()]
            if len(there) == len(self._parts):
                merge(there, self._trace)
                return status
            why = self._why_none(bool(there))
        print(f"tombolo: the trace {paths.shown(self._trace)} is not written: {why}", file=sys.stderr)
        return status or 1

    def _why_none(self, some: bool) -> str:
        if not some:
            return "no process has left its part; one that runs families leaves it when it exits"
        missing = [str(rank) for rank, part in enumerate(self._parts) if not part.is_file()]
        return f"no part of process {', '.join(missing)}, which was ended before its exit or could not write it"


def ended(argv: list[str], env: dict[str, str]) -> int:
    """Runs a command as a shell does, and returns its status. It does not go on without this one."""
    running = None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, files.ENDING)  # one that comes now is taken below
    try:
        try:
            running = subprocess.Popen(
                argv, env=env, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        status = running.wait()
    except OSError as mistake:
        raise UserError(f"{argv[0]} does not start: {mistake.strerror}") from None
    except BaseException:
        if running:
            _stop(running)
        raise
    return status if status >= 0 else 128 - status


def _stop(running: subprocess.Popen) -> None:
    running.terminate()
    try:
        running.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def merge(parts: list[Path], trace: Path) -> None:
    """The events of all parts, each as a process of its own."""
    events = []
    for number, part in enumerate(parts):
        found = json.loads(part.read_text())["traceEvents"]
        events += [event | {"pid": number + 1} for event in found]
    files.write(trace, json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))


def flags() -> list[str]:
    """For a C++ compiler, behind the sources."""
    archive = libraries.need_program(ARCHIVE)
    more = (archive.parent / FLAGS).read_text().split()
    modules = f"-Wl,-rpath,{archive.parent}"  # for processes of other hosts
    return ["-std=c++20", f"-I{libraries.include('tombolo/svp.hpp')}", str(archive), *more, modules]


def flags_of_c() -> list[str]:
    """For a C compiler, behind the sources."""
    folder = libraries.need_program(LIBRARY_OF_C).parent
    return [f"-I{libraries.include('tombolo/svp.h')}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltombolo_svp_c"]
