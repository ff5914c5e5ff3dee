#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the package as its users have it.

    tools/check_package.py [--compile]

It makes the wheel, installs it in empty virtual environments, one for each MPI, and uses it away from the
checkout. Where root runs this, the package is root's and its user is another one.

CMake is configured as for `pip install .`, but the files are those of build/release; with --compile all are
compiled anew. Each command is printed with the lines of its output that it must have. No output names the
checkout, and nothing is written to the package.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".env/cli/bin/python"
SOURCES = ("examples/work_queue", "examples/unlocked_store", "examples/svp", "tools/package_programs")
TRANSPORTS = ("map", "window")
NOBODY = 65534  # a user and a group that own nothing
LIMIT_S = 120  # of one command
TAIL = 4000  # characters


@dataclass(frozen=True)
class Step:
    """A command of a shell. Each expression of `lines` has to match in a line of its output."""

    command: str
    lines: Sequence[str] = ()
    status: int = 0


def alone(header: str, compiler: str, flags: str) -> Step:
    """A source that includes that header and nothing else compiles."""
    source = "alone.cpp" if compiler == "c++" else "alone.c"
    return Step(
        f"echo '#include <{header}>' > {source} && {compiler} -Wall -Wextra -Werror -c {source} $({flags}) -o alone.o"
    )


def here(*names: str) -> tuple[str, ...]:
    """Lines of `tombolo doctor`."""
    return tuple(rf"^. {re.escape(name)} .*\byes\b" for name in names)


def in_processes(transport: str, program: str, line: str) -> Step:
    """A program with four threads, each in a process, says that line."""
    command = f"tombolo dsm run -n 5 --stats --transport {transport} {program}"
    return Step(command, (line, rf"^tombolo: stats rank=1 .*transport={transport.split()[0]} .*"))


PIGZ = "pigz -c -p 4 squares > squares.gz && pigz -dc squares.gz | cmp - squares && echo the same"
COUNTED = "^counted 4000$"
STEPS = {
    "mpich": (
        Step("tombolo --help", (r"\bdoctor\b", r"\bdsm\b", r"\bsvp\b")),
        Step(
            "tombolo doctor",
            here(
                "mpich", "libtombolo_mpi_mpich.so", "libtombolo_mpi_openmpi.so", "libtombolo_mpi_abi.so", "tombolo-dsm",
                "libtombolo_dsm.so", "libtombolo_pthread.so", "libtombolo_pthread_hosts.so", "tombolo-svp",
                "libtombolo_families.a", "libtombolo_svp_c.so", "tombolo dsm cc",
            ),
        ),
        alone("tombolo/dsm.h", "cc", "tombolo dsm flags"),
        alone("tombolo/dsm.h", "c++", "tombolo dsm flags"),
        alone("tombolo/svp.h", "cc", "tombolo svp flags --c"),
        alone("tombolo/svp.h", "c++", "tombolo svp flags --c"),
        alone("tombolo/svp.hpp", "c++", "tombolo svp flags"),
        # Windows.
        Step(
            'eval "$(tombolo env)" && $MPICC -O2 examples/work_queue/work_queue.c -o queue'
            " && $MPICC -g examples/unlocked_store/unlocked_store.c -o store"
        ),
        Step("tombolo run -n 2 --stats ./queue", ("^RESULT ok .*", "windows.*")),
        Step("tombolo run -n 2 --machine stale --seed 7 ./store", ("^tombolo: .*lost update.*",), status=1),
        # Families.
        Step("c++ -O2 examples/svp/fibonacci.cpp $(tombolo svp flags) -o fibonacci"),
        Step("tombolo svp run ./fibonacci", (r"^fibonacci\(25\) = 75025$",)),
        Step("c++ -O2 -I. examples/svp/tree.cpp $(tombolo svp flags) -o tree"),
        Step("tombolo svp run -n 2 ./tree", ("^2 processes, .*right$",)),
        Step("tombolo svp run -n 2 --mpi mpich ./tree", ("^2 processes, .*right$",)),
        Step("cc -O2 examples/svp/divisors.c $(tombolo svp flags --c) -o divisors"),
        Step("tombolo svp run ./divisors", ("has .* divisors",)),
        Step("tombolo-svpc -O2 examples/svp/calls.svp -o calls"),
        Step("tombolo svp run ./calls", (".+",)),
        # Threads in processes: programs as they are, compiled ones, and those of tombolo/dsm.h.
        *(in_processes(transport, PIGZ, "^the same$") for transport in TRANSPORTS),
        Step("cc -O2 -pthread tools/package_programs/counter.c -o counter"),
        *(in_processes(transport, "./counter", COUNTED) for transport in (*TRANSPORTS, "mpi")),
        Step("cc -O2 -pthread -DATOMIC tools/package_programs/counter.c -o atomic"),
        Step("tombolo dsm run -n 5 --transport window ./atomic", ("atomic instructions: count ",), status=2),
        Step("tombolo-cc -O2 -pthread -DATOMIC tools/package_programs/counter.c -o atomic"),
        in_processes("window", "./atomic", COUNTED),
        Step("tombolo-c++ -O2 -pthread -DATOMIC -x c++ tools/package_programs/counter.c -o atomic"),
        in_processes("window --machine stale", "./atomic", COUNTED),
        Step("cc -O2 tools/package_programs/sums.c $(tombolo dsm flags) -o sums"),
        *(Step(f"tombolo dsm run -n 3 --transport {t} ./sums", ("^sum 499500 of 3 threads$",)) for t in TRANSPORTS),
    ),
    "openmpi": (
        Step('eval "$(tombolo env --mpi openmpi)" && $MPICC -O2 examples/work_queue/work_queue.c -o queue'),
        Step("tombolo run -n 2 --stats ./queue", ("^RESULT ok .*", "windows.*")),
        Step("c++ -O2 -I. examples/svp/tree.cpp $(tombolo svp flags) -o tree"),
        Step("tombolo svp run -n 2 --mpi openmpi ./tree", ("^2 processes, .*right$",)),
        Step("cc -O2 -pthread tools/package_programs/counter.c -o counter"),
        in_processes("mpi --mpi openmpi", "./counter", COUNTED),
    ),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="do not take the files of build/release")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tombolo-package-") as folder:
        Path(folder).chmod(0o755)  # for another user
        wheel = made(Path(folder), arguments.compile)
        failures: list[str] = []
        for mpi, steps in STEPS.items():
            package = Package(Path(folder) / mpi, mpi, wheel)
            found = [package.failure(step) for step in steps]
            failures += [f"{mpi}: {failure}" for failure in (*found, package.change()) if failure]
    for failure in failures:
        print("FAILED", failure)
    total = sum(len(steps) + 1 for steps in STEPS.values())
    print(f"package: {total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


def made(folder: Path, compiled: bool) -> Path:
    """The wheel."""
    if not compiled:
        run("cmake", "--build", "build/release", "--target", "tombolo_wheel", "--", "--quiet")
    os.environ["TOMBOLO_BUILT"] = "" if compiled else "build/release"
    run(PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".")
    (wheel,) = folder.glob("*.whl")
    return wheel


def run(*command: object) -> None:
    words = [str(word) for word in command]
    print("$", *words, flush=True)
    if status := subprocess.run(words, cwd=ROOT).returncode:
        sys.exit(f"FAILED: status {status}")


class Package:
    """The package in an environment that has nothing but an MPI besides, and a folder of its user."""

    def __init__(self, place: Path, mpi: str, wheel: Path):
        self.environment = place / "environment"
        self.home = place / "home"
        run(sys.executable, "-m", "venv", self.environment)
        run(
            self.environment / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            wheel, "-r", f"requirements/{mpi}.txt",
        )  # fmt: skip
        for folder in SOURCES:
            shutil.copytree(ROOT / folder, self.home / folder)
        (self.home / "squares").write_text("".join(f"{i * i}\n" for i in range(100_000)))
        self.user = self.another_user()
        if self.user:
            os.chown(self.home, NOBODY, NOBODY)
        self.files = self.listed()

    def another_user(self) -> dict[str, Any]:
        """Who runs the commands: another user if root may, and that one can start this Python."""
        another: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        try:
            subprocess.run([str(self.environment / "bin/python"), "-c", ""], check=True, **another)
        except (PermissionError, subprocess.CalledProcessError):
            print("the package is used by the user to whom it belongs", flush=True)
            return {}
        return another

    def listed(self) -> dict[Path, int]:
        """The time of each file, but for those that Python keeps."""
        files = (path for path in self.environment.rglob("*") if "__pycache__" not in path.parts)
        return {path: path.lstat().st_mtime_ns for path in files}

    def change(self) -> str:
        """Names the files of the package that the commands have changed; empty: none."""
        found = self.listed()
        changed = [path for path in self.files.keys() | found.keys() if self.files.get(path) != found.get(path)]
        print("changed in the package:", *(map(str, changed) if changed else ["nothing"]), flush=True)
        return f"changed in the package: {' '.join(map(str, changed))}" if changed else ""

    def failure(self, step: Step) -> str:
        """Runs the step and says in one line why it failed; empty: it has passed."""
        print(f"$ {step.command}", flush=True)
        env = {"PATH": f"{self.environment}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "COLUMNS": "200"}
        # It ends all processes of a command that takes too long.
        limited = ["timeout", "--kill-after=5", str(LIMIT_S), "bash", "-c", step.command]
        done = subprocess.run(
            limited, cwd=self.home, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.user,
        )  # fmt: skip
        found = [re.search(f".*?{line}.*", done.stdout, re.MULTILINE) for line in step.lines]
        for match in filter(None, found):
            print("   ", match[0].strip(), flush=True)
        missing = [line for line, match in zip(step.lines, found, strict=True) if not match]
        if done.returncode == step.status and not missing and str(ROOT) not in done.stdout:
            return ""
        lacks = "".join(f"; no line has {line}" for line in missing)
        print(f"status {done.returncode}{lacks}\n{done.stdout[-TAIL:]}", flush=True)
        last = done.stdout.rstrip().rpartition("\n")[2]
        return f"{step.command}: status {done.returncode}{lacks}; last line: {last}"


if __name__ == "__main__":
    sys.exit(main())
