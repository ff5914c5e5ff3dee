# SPDX-License-Identifier: Apache-2.0
"""Programs in Fortran, Python and against the standard ABI: every window of theirs is served."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tombolo import libraries, mpis, processes, stats
from tombolo.launch import Choice, job
from tombolo.suite.runner import succeeded

ROOT = Path(__file__).resolve().parents[2]
RANKS = 3
MACHINES = ("coherent", "stale")


def mpi_with_libraries(key: str, abi: str) -> mpis.Mpi:
    mpi = mpis.find(key)
    if mpi is None:
        pytest.skip(f"{key} is not installed")
    if libraries.find(abi) is None:
        pytest.skip("the libraries are not built: make native")
    return mpi


def run(mpi: mpis.Mpi, command: list[str], machine: str, abi: str | None = None) -> tuple[str, int]:
    """Its output, and how many windows Tombolo served; none may have been forwarded."""
    choice = Choice(machine, seed=1 if machine == "stale" else None, stats="json")
    outcome = processes.run(job(mpi, RANKS, command, choice, abi, yields=True), 60)
    assert outcome.status == 0, outcome.stdout + outcome.stderr
    windows = stats.total(outcome.stderr)
    assert windows.forwarded == 0, windows.reasons
    return outcome.stdout, windows.served


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("key", ["mpich-apt", "openmpi-apt"])
@pytest.mark.parametrize("interface", ["mpi", "mpi_f08"])
def test_fortran(interface, key, machine, tmp_path):
    mpi = mpi_with_libraries(key, mpis.need(key).kind if mpis.find(key) else "mpich")
    compiler = shutil.which(f"mpifort.{mpi.kind}")
    if compiler is None:
        pytest.skip(f"mpifort.{mpi.kind} is not installed")
    program = tmp_path / "windows"
    source = ROOT / "mpi" / "fortran" / "windows.F90"
    flags = ["-O1", "-DF08"] if interface == "mpi_f08" else ["-O1"]
    subprocess.run([compiler, *flags, "-J", tmp_path, source, "-o", program], check=True)
    stdout, served = run(mpi, [str(program)], machine)
    assert succeeded(stdout, 0)
    assert served == 3 * RANKS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("key", ["mpich", "openmpi"])
def test_mpi4py(key, machine):
    mpi = mpi_with_libraries(key, key)
    python = mpi.prefix / "bin" / "python" if mpi.prefix else None
    asked = [python, "-c", "import mpi4py"]
    if python is None or subprocess.run(asked, capture_output=True).returncode != 0:
        pytest.skip(f"mpi4py is not installed beside {key}")
    stdout, served = run(mpi, [str(python), str(ROOT / "mpi" / "python" / "windows.py")], machine)
    assert succeeded(stdout, 0)
    assert served == 3 * RANKS


@pytest.mark.parametrize("machine", MACHINES)
def test_standard_abi(machine, tmp_path):
    mpi = mpi_with_libraries("mpich", "abi")
    compiler = mpi.launcher.parent / "mpicc_abi"
    if not compiler.exists():
        pytest.skip("this MPICH has no mpicc_abi")
    source = ROOT / "examples" / "distributed_hash_table" / "distributed_hash_table.c"
    program = tmp_path / "table"
    subprocess.run([compiler, "-O2", "-std=c11", source, "-o", program, "-lm"], check=True)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    assert re.search(r"libmpi_abi\.so", linked)
    _, served = run(mpi, [str(program)], machine, abi="abi")
    assert served >= RANKS
