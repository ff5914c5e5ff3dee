# SPDX-License-Identifier: Apache-2.0
"""Programs of families that Slurm's srun starts: `make slurm-test` installs it."""

import subprocess
from pathlib import Path

import pytest
from dsm_slurm_test import SETTINGS, cluster, libraries_of_mpich, libraries_of_mpis, srun
from tombolo import libraries, paths, svp

assert cluster  # a fixture
ALONE = {"TOMBOLO_SVP_WORKERS": "1", "TOMBOLO_SVP_MEMORY": "16MiB"} | SETTINGS


@pytest.fixture(scope="module")
def matrix(cluster, tmp_path_factory) -> Path:
    for name in (svp.ARCHIVE, "libtombolo_svp_mpich.so", "libtombolo_svp_openmpi.so"):
        libraries.need_program(name)
    program = tmp_path_factory.mktemp("programs") / "matrix"
    root = paths.checkout()
    command = ["c++", "-O1", f"-I{root}", root / "examples/svp/matrix.cpp", "-o", program, *svp.flags()]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize("share", ["host", "none"])
@pytest.mark.parametrize(("plugin", "library"), libraries_of_mpis(), ids=str)
def test_srun_starts_the_processes(cluster, matrix, plugin, library, share):
    if f"\t{plugin}" not in srun(cluster, "--mpi=list").stdout.replace(" ", "\t"):
        pytest.skip(f"this srun has no {plugin}")
    more = ALONE | {"TOMBOLO_SVP_MPI": str(library), "TOMBOLO_SVP_SHARE": share}
    done = srun(cluster, f"--mpi={plugin}", "-n", 3, matrix, **more)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 processes, c[n-1][n-1] = 44, digest 14e5a4315f056325: right\n"


def test_processes_that_do_not_find_each_other_are_refused(cluster, matrix):
    more = ALONE | {"TOMBOLO_SVP_MPI": str(libraries_of_mpich()[-1])}
    done = srun(cluster, "--mpi=none", "-n", 3, matrix, **more)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "srun has started 3 processes, and each is alone for this MPI" in done.stderr
