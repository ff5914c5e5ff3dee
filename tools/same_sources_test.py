# SPDX-License-Identifier: Apache-2.0
"""The files of sync/ and windows/ that an MPI program runs are those that the simulated chip runs:
both lists are read off the dependencies that the compiler wrote."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
# The objects that an MPI program runs, and those that run on the chip.
MPI = re.compile(r"^(mpi/CMakeFiles/tombolo_mpi|runtime/CMakeFiles/tombolo_runtime_).*\.o$")
CHIP = re.compile(r"^experiments/.*\.o$")
# Files that no experiment of the papers uses: chosen where a machine has atomics of its own.
FOR_ATOMICS_ALONE = {"sync/locks/reader_bias.h"}


def included() -> dict[str, set[str]]:
    """Object -> the files of sync/ and windows/ that it was compiled from."""
    if not (BUILD / "build.ninja").exists():
        pytest.skip("not built: make build")
    text = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True).stdout
    # A compiler cache may have made the paths relative to the build's folder.
    root = rf"(?:{re.escape(str(ROOT))}|\.\./\.\.)"
    files: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in text.splitlines():
        if match := re.match(r"^(\S+): #deps", line):
            current = files.setdefault(match[1], set())
        elif match := re.match(rf"^\s+{root}/((?:sync|windows)/\S+)$", line):
            current.add(match[1])
    return files


def used_by(objects: re.Pattern) -> set[str]:
    return set().union(*(files for name, files in included().items() if objects.match(name)), set())


def test_an_mpi_program_and_the_chip_run_the_same_files(capsys):
    mpi = used_by(MPI)
    chip = used_by(CHIP)
    if not mpi or not chip:
        pytest.skip("the libraries for MPI and the experiments are not both built: make build")
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name}" for name in sorted(mpi & chip)))
    # None is left to MPI alone, and the interesting ones are there.
    assert mpi - chip <= FOR_ATOMICS_ALONE
    assert {
        "windows/window.h",
        "sync/locks/best_effort_lock.h",
        "sync/locks/writer_preference_lock.h",
        "sync/locks/fifo_lock.h",
        "sync/epochs/active_target.h",
        "sync/epochs/match_vector.h",
        "sync/epochs/completion_counter.h",
        "sync/barriers/dissemination_barrier.h",
    } <= mpi & chip


def test_none_of_them_knows_a_machine_or_an_operating_system():
    for folder in ("sync", "windows"):
        for path in (ROOT / folder).rglob("*.h"):
            if "testing" in path.parts:
                continue
            text = path.read_text()
            assert "backends/" not in text, path
            assert not re.search(
                r"^\s*#\s*if(def)?\b.*(__linux__|__x86_64__|__aarch64__|_WIN32|SCC)", text, re.MULTILINE
            ), path
