# SPDX-License-Identifier: Apache-2.0
"""Our own libraries and programs: in the installed package, or in the build folder of the checkout."""

import os
from pathlib import Path

from tombolo import paths
from tombolo.errors import UserError


def folders() -> list[Path]:
    """Where to look, first match wins."""
    if named := os.environ.get("TOMBOLO_LIB_DIR"):
        return [Path(named).resolve()]
    if paths.checkout():
        return [built / "mpi"] if (built := paths.built()) else []
    return [paths.PACKAGE / "lib"]


def find(abi: str) -> Path | None:
    """libtombolo_mpi_<abi>.so for `mpich`, `openmpi` or `abi`."""
    for folder in folders():
        library = folder / f"libtombolo_mpi_{abi}.so"
        if library.is_file():
            return library
    return None


def need(abi: str) -> Path:
    if library := find(abi):
        return library
    looked = ", ".join(paths.shown(folder) for folder in folders())
    raise UserError(f"libtombolo_mpi_{abi}.so is not in {looked}; to build it: make native")


def find_program(name: str) -> Path | None:
    """A program of ours: beside the libraries, or where the checkout builds it."""
    for folder in _program_folders():
        program = folder / name
        if program.is_file() and os.access(program, os.X_OK):
            return program
    return None


def need_program(name: str) -> Path:
    """As `find_program`; a UserError that says how to build it where it is not there."""
    if program := find_program(name):
        return program
    looked = ", ".join(paths.shown(folder) for folder in _program_folders())
    if paths.checkout():
        raise UserError(f"{name} is not in {looked}; to build it: make scc")
    raise UserError(
        f"{name} is not in {looked}: the package was built where Boost.Context, toml++, CLI11 or "
        "nlohmann's JSON was missing; install them (on Debian libboost-context-dev, "
        "libtomlplusplus-dev, libcli11-dev, nlohmann-json3-dev), then install the package again"
    )


def _program_folders() -> list[Path]:
    if paths.checkout() and "TOMBOLO_LIB_DIR" not in os.environ:
        return [built / "experiments"] if (built := paths.built()) else []
    return folders()
