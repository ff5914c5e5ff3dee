# SPDX-License-Identifier: Apache-2.0
"""Programs on virtual shared memory with transport mpi, started by Slurm's srun: `make slurm-test` installs it."""

import os
import subprocess
from pathlib import Path

import pytest
import slurm
from dsm_test import SUMS
from tombolo import dsm, libraries, mpis

LIMIT = 120
SETTINGS = {
    "TOMBOLO_DSM_TRANSPORT": "mpi",
    "TOMBOLO_DSM_MEMORY": "4MiB",
    "TOMBOLO_DSM_CACHE": "64KiB",
    # More processes than processors: give them away while waiting.
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if not os.environ.get("TOMBOLO_SLURM_TEST"):
        pytest.skip("starts the daemons of Slurm: make slurm-test")
    if why := slurm.lack():
        pytest.skip(why)
    for kind in ("mpich", "openmpi"):
        libraries.need_program(f"libtombolo_dsm_{kind}.so")
    with slurm.running(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture(scope="module")
def sums(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    source, program = folder / "sums.c", folder / "sums"
    source.write_text(SUMS)
    subprocess.run(["cc", "-O1", source, "-o", program, *dsm.flags()], check=True)
    return program


def libraries_of_mpich() -> list[Path]:
    found = []
    for key in ("mpich", "mpich-apt"):
        mpi = mpis.find(key)
        folders = [mpi.prefix / "lib"] if mpi and mpi.prefix else [Path("/usr/lib/x86_64-linux-gnu")]
        found += [f / n for f in folders for n in ("libmpi.so.12", "libmpich.so.12") if mpi and (f / n).exists()][:1]
    return found


def libraries_of_mpis() -> list[tuple[str, Path]]:
    """With the kind of srun's that each understands."""
    openmpi = mpis.find("openmpi")
    library = openmpi.prefix / "lib" / "libmpi.so.40" if openmpi and openmpi.prefix else None
    of_mpich = [("pmi2", path) for path in libraries_of_mpich()]
    return [*of_mpich, ("pmix", library)] if library and library.exists() else of_mpich


def srun(cluster, *words, **more) -> subprocess.CompletedProcess:
    command = ["srun", *map(str, words)]
    return subprocess.run(command, env=cluster | SETTINGS | more, capture_output=True, text=True, timeout=LIMIT)


@pytest.mark.parametrize("servers", [0, 1])
@pytest.mark.parametrize(("plugin", "library"), libraries_of_mpis(), ids=str)
def test_srun_starts_the_threads(cluster, sums, plugin, library, servers):
    if f"\t{plugin}" not in srun(cluster, "--mpi=list").stdout.replace(" ", "\t"):
        pytest.skip(f"this srun has no {plugin}")
    more = {"TOMBOLO_DSM_MPI": str(library), "TOMBOLO_DSM_SERVERS": str(servers)}
    done = srun(cluster, f"--mpi={plugin}", "-n", 4 + servers, sums, **more)
    assert (done.returncode, done.stdout) == (0, "499500 40 10 0 3 moved\n"), done.stderr


@pytest.mark.parametrize("plugin", ["none", "pmix"])
def test_processes_that_do_not_find_each_other_are_refused(cluster, sums, plugin):
    """Each would be a program by itself, with a result of its own."""
    library = libraries_of_mpich()[-1]
    if plugin == "pmix" and library.name != "libmpich.so.12":
        pytest.skip("Debian's MPICH, which does not look for PMIx, is not installed")
    done = srun(cluster, f"--mpi={plugin}", "-n", 3, sums, TOMBOLO_DSM_MPI=str(library))
    assert done.returncode != 0
    assert done.stdout == ""
    assert "srun has started 3 processes, and each is alone for this MPI" in done.stderr
    assert "srun --mpi=pmi2" in done.stderr


def test_one_process_is_a_program(cluster, sums):
    done = srun(cluster, "--mpi=none", "-n", 1, sums, TOMBOLO_DSM_MPI=str(libraries_of_mpich()[-1]))
    assert (done.returncode, done.stdout) == (0, "499500 10 1 0 0 moved\n"), done.stderr


def test_a_killed_task_ends_the_job(cluster, tmp_path):
    source, program = tmp_path / "endless.c", tmp_path / "endless"
    source.write_text(
        "#include <signal.h>\n#include <tombolo/dsm.h>\n"
        "int main(void) { tombolo_dsm_init(); if (tombolo_dsm_thread() == 1) raise(SIGKILL);\n"
        "tombolo_dsm_barrier_wait(); return 0; }\n"
    )
    subprocess.run(["cc", source, "-o", program, *dsm.flags()], check=True)
    library = str(libraries_of_mpich()[0])
    done = srun(cluster, "--mpi=pmi2", "--kill-on-bad-exit=1", "-n", 3, program, TOMBOLO_DSM_MPI=library)
    assert done.returncode != 0
    assert "task 1: Killed" in done.stderr
    assert not [p for p in Path("/proc").glob("[0-9]*/exe") if os.path.realpath(p) == str(program)]
