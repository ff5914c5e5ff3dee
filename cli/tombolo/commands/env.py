# SPDX-License-Identifier: Apache-2.0
"""`tombolo env`: the paths that people's own scripts need."""

import shlex
from typing import Annotated

import typer

from tombolo import libraries, mpis, options


def env(
    mpi: Annotated[str, typer.Option(help=f"The lines are for this MPI: {options.MPIS}.")] = "mpich",
) -> None:
    """Print MPICC=, MPIEXEC= and TOMBOLO_PRELOAD= for a shell."""
    chosen = mpis.need(mpi)
    values = {
        "MPICC": mpis.compiler(chosen),
        "MPIEXEC": chosen.launcher,
        "TOMBOLO_PRELOAD": libraries.need(chosen.kind),
    }
    for name, value in values.items():
        print(f"{name}={shlex.quote(str(value))}")
