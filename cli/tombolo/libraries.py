# SPDX-License-Identifier: Apache-2.0
"""Our own libraries and programs: in the installed package, or in the build of the checkout.

`find` looks; `need` has a checkout build a missing one.
"""

import os
from collections.abc import Callable
from pathlib import Path

from tombolo import building, hints, paths
from tombolo.errors import UserError
from tombolo.hints import Hint


def folders() -> list[Path]:
    """Where to look for libraries; none where another checkout's build is in the way."""
    return _folders("mpi")


def find(abi: str) -> Path | None:
    """libtombolo_mpi_<abi>.so for `mpich`, `openmpi` or `abi`."""
    for folder in folders():
        library = folder / f"libtombolo_mpi_{abi}.so"
        if library.is_file():
            return library
    return None


def need(abi: str) -> Path:
    """As `find`, built if it is not there; else a UserError with a hint."""
    return find(abi) or _made(
        f"libtombolo_mpi_{abi}.so",
        lambda: find(abi),
        hint(),
        "native",
        f"NATIVE=tombolo_mpi_{abi}",
    )


def refresh(*targets: str) -> None:
    """Makes anew, in a checkout, the measured libraries and programs whose sources have changed: only make knows
    which. Does nothing where another folder is named."""
    root = paths.checkout()
    if root is None or _named():
        return
    with building.alone(root):
        for target in targets:
            building.build("what is measured", root, target, only_if_needed=True)


def hint() -> Hint:
    """The remedy for a missing library."""
    return _hint(hints.LIBRARY, hints.LIBRARY_OF_PACKAGE)


# The folder of the build that a program, or a library of programs, is in, and the target that makes
# it.
PROGRAMS = {
    "tombolo-scc": ("experiments", "scc"),
    "tombolo-locks": ("runtime", "native"),
    "tombolo-dsm": ("dsm", "native"),
    "libtombolo_dsm.so": ("dsm", "native"),
    "libtombolo_dsm_mpich.so": ("dsm", "native"),
    "libtombolo_dsm_openmpi.so": ("dsm", "native"),
    "libtombolo_pthread.so": ("dsm", "native"),
    "libtombolo_pthread_hosts.so": ("dsm", "native"),
    "tombolo-svp": ("svp", "native"),
    "libtombolo_families.a": ("svp", "native"),
    "tombolo-svp-bench": ("svp", "svp-bench"),
    "tombolo-svp-remote-bench": ("svp", "svp-bench"),
    "tombolo-svp-ping-pong-mpich": ("svp", "svp-bench"),
    "tombolo-svp-ping-pong-openmpi": ("svp", "svp-bench"),
    "libtombolo_svp_c.so": ("svp", "native"),
    "libtombolo_svp_mpich.so": ("svp", "native"),
    "libtombolo_svp_openmpi.so": ("svp", "native"),
}


def find_program(name: str) -> Path | None:
    """A program of ours: beside the libraries, or where the checkout builds it."""
    for folder in _folders(PROGRAMS[name][0]):
        program = folder / name
        # A library need not be executable: those that CMake installs on Debian are not.
        if program.is_file() and (program.suffix or os.access(program, os.X_OK)):
            return program
    return None


def need_program(name: str) -> Path:
    """As `find_program`, built if it is not there; else a UserError with a hint."""
    return find_program(name) or _made(name, lambda: find_program(name), program_hint(name), PROGRAMS[name][1])


def program_hint(name: str) -> Hint:
    """The remedy for a missing program."""
    folder, target = PROGRAMS[name]
    if target == "native":
        return _hint(hints.LIBRARY, hints.FAMILIES_OF_PACKAGE if folder == "svp" else hints.LIBRARY_OF_PACKAGE)
    return _hint(hints.EXPERIMENTS, hints.EXPERIMENTS_OF_PACKAGE)


def compiler_folders() -> list[Path]:
    """Where to look for the plugin of clang."""
    return _folders("dsm/compiler")


def need_compiler(find_plugin: Callable[[], Path | None]) -> Path:
    """The plugin, built if it is not there; else a UserError with a hint."""
    return find_plugin() or _made("the plugin of clang", find_plugin, compiler_hint(), "compiler")


def compiler_hint() -> Hint:
    """The remedy for a missing plugin of clang, which may have been left out of a package."""
    return _hint(hints.COMPILER, hints.COMPILER_OF_PACKAGE)


def are_built_on_demand() -> bool:
    """Whether a missing one is built here: in a checkout, unless another folder is named."""
    return paths.checkout() is not None and not _named()


def include(header: str) -> Path:
    """The one folder that users' programs include, in which `header` is; built with the libraries."""
    if root := paths.checkout():
        need_program("libtombolo_dsm.so")
        folder = (paths.built() or root / paths.BUILD) / "include"
    else:
        folder = paths.PACKAGE / "include"
    if not (folder / header).is_file():
        raise UserError(f"{header} is not in {paths.shown(folder)}")
    return folder


def _named() -> str | None:
    return os.environ.get("TOMBOLO_LIB_DIR") or None


def _folders(part: str) -> list[Path]:
    """`part`: the folder below the checkout's build."""
    if named := _named():
        return [Path(named).resolve()]
    if paths.checkout():
        return [built / part] if (built := paths.built()) else []
    return [paths.PACKAGE / "lib"]


def _hint(of_checkout: Hint, of_package: Hint) -> Hint:
    if _named():
        return hints.NAMED_FOLDER
    return hints.here(of_checkout, of_package)


def _made(name: str, find: Callable[[], Path | None], advice: Hint, target: str, *settings: str) -> Path:
    """Built in a checkout, unless another folder is named; commands of one checkout take turns."""
    root = paths.checkout()
    if root is None or not are_built_on_demand():
        (folder,) = folders()
        raise UserError(f"{name} is not in {paths.shown(folder)}: {advice}")
    with building.alone(root):
        if not find():
            building.build(name, root, target, *settings)
    if found := find():
        return found
    raise UserError(f"{name} is not there although `make {target}` ended well; see {root}/build")
