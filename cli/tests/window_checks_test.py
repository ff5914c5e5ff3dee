# SPDX-License-Identifier: Apache-2.0
"""Windows and datatypes as programs see them, under both MPIs and on each machine.

Served by Tombolo: the programs of mpi/windows. Beside the host's own answers: the datatypes.
"""

import re
import subprocess
from pathlib import Path

import pytest
from tombolo import compile, libraries, mpis, paths, processes, stats
from tombolo.errors import UserError
from tombolo.launch import Choice, job
from tombolo.mpis import Mpi, compiler, root_may_launch

ROOT = Path(__file__).resolve().parents[2]
WINDOWS = ROOT / "mpi" / "windows"
MPIS = ("mpich", "openmpi")
MACHINES = ("coherent", "flushed", "stale")


def need(key: str) -> Mpi:
    try:
        compiler(mpi := mpis.need(key))
    except UserError as error:
        pytest.skip(str(error))
    return mpi


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("key", MPIS)
@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("fetch_check", 2),
        ("plain_check", 3),
        ("queries_check", 3),
        ("groups_check", 4),
        ("kept_check", 3),
    ],
)
def test_windows_answer_as_the_standard_says(name, ranks, key, machine):
    mpi = need(key)
    if libraries.find(mpi.kind) is None:
        pytest.skip("the libraries are not built: make native")
    source = WINDOWS / f"{name}.c"
    program = compile.compiled(mpi, source, paths.home() / "build" / "checks", [f"-I{ROOT}"])
    choice = Choice(machine, stats="json")
    outcome = processes.run(job(mpi, ranks, [str(program), machine], choice, yields=True), 60)
    assert outcome.status == 0, outcome.stdout + outcome.stderr
    told = stats.total(outcome.stderr)
    assert told.served > 0 and told.forwarded == 0, outcome.stderr
    if name == "kept_check":
        assert re.search(r'"windows_from_kept_parts":[1-9]', outcome.stderr), outcome.stderr


@pytest.mark.parametrize("key", MPIS)
def test_datatypes_mean_what_the_host_says(key, tmp_path):
    """A program of our own sources: compiled with the MPI whose handles they are to understand."""
    mpi = need(key)
    program = tmp_path / "datatypes_check"
    sources = [
        *sorted((ROOT / "mpi" / "datatypes").glob("*.cpp")),
        *sorted((ROOT / "host" / "mpi").glob("*.cpp")),
        ROOT / "windows" / "elements" / "elements.cpp",
    ]
    options = ["-x", "c++", "-std=c++20", "-O0", f"-I{ROOT}", "-DFMT_HEADER_ONLY"]
    made = subprocess.run(
        [compiler(mpi), *options, *sources, "-o", program, "-lstdc++", "-lm", "-ldl"],
        capture_output=True,
        text=True,
        env=root_may_launch(),
    )
    assert made.returncode == 0, made.stderr
    outcome = processes.run(job(mpi, 1, [str(program), "1", "300"], None, yields=True), 60)
    assert outcome.status == 0, outcome.stdout + outcome.stderr
    assert ", 0 failures" in outcome.stdout
