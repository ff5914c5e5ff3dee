# SPDX-License-Identifier: Apache-2.0
"""`tombolo build`: a C program, once for each MPI of this host."""

from pathlib import Path
from typing import Annotated

import typer

from tombolo import compile, mpis, options, paths


def build(
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCE.c...", exists=True, dir_okay=False)],
    mpi: Annotated[
        list[str] | None,
        typer.Option(
            help=f"The program is compiled for this MPI, or for several: {options.MPIS}. [default: every MPI with a "
            "compiler]"
        ),
    ] = None,
    into: Annotated[Path, typer.Option(help="This folder gets one folder for each MPI.")] = Path("build/own"),
) -> None:
    """Compile single-file C programs with each MPI's mpicc."""
    chosen = [mpis.need(key) for key in mpi] if mpi else [m for m in mpis.found() if m.mpicc]
    for each in chosen:
        for source in sources:
            print(paths.shown(compile.compiled(each, source.resolve(), into.resolve())))
