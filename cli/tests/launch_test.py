# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from tombolo import host, launch, libraries
from tombolo.launch import Choice
from tombolo.mpis import Mpi

MPICH = Mpi("mpich", Path("/m/mpiexec"), None, Path("/m"))
OPENMPI = Mpi("openmpi", Path("/o/mpirun"), None, Path("/o"))
CVARS = launch.MPICH_YIELDS


@pytest.fixture(autouse=True)
def host_with_two_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "cores", lambda: 2)
    monkeypatch.setattr(host, "physical_cores", lambda: 2)
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    for name in (*CVARS, "LD_PRELOAD", "OMPI_MCA_osc"):
        monkeypatch.delenv(name, raising=False)
    for abi in ("mpich", "openmpi", "abi"):
        (tmp_path / f"libtombolo_mpi_{abi}.so").touch()


def test_the_stock_mpi_runs_without_a_trace_of_us():
    job = launch.job(MPICH, 2, ["a", "b"], None)
    assert job.argv == ["/m/mpiexec", "-n", "2", "a", "b"]
    assert "LD_PRELOAD" not in job.env


def test_mpich_gets_the_library_and_the_machine_through_genv():
    argv = launch.job(MPICH, 2, ["a"], Choice("stale", seed=7)).argv
    pairs = {argv[i + 1]: argv[i + 2] for i, word in enumerate(argv) if word == "-genv"}
    assert pairs["TOMBOLO_MACHINE"] == "stale"
    assert pairs["TOMBOLO_SEED"] == "7"
    assert pairs["LD_PRELOAD"] == str(libraries.find("mpich"))
    assert argv[-1] == "a"


def test_open_mpi_gets_them_through_x():
    argv = launch.job(OPENMPI, 2, ["a"], Choice("flushed", pool="/dev/dax0.0", atomics="none")).argv
    given = [argv[i + 1] for i, word in enumerate(argv) if word == "-x"]
    assert f"LD_PRELOAD={libraries.find('openmpi')}" in given
    assert {"TOMBOLO_MACHINE=flushed", "TOMBOLO_POOL=/dev/dax0.0", "TOMBOLO_ATOMICS=none"} <= set(given)
    assert "--oversubscribe" not in argv


def test_a_program_of_the_standard_abi_gets_that_library():
    argv = launch.job(MPICH, 2, ["a"], Choice(), abi="abi").argv
    assert str(libraries.find("abi")) in argv


def test_libraries_that_the_user_preloads_stay(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/x/other.so")
    assert launch.preload(Path("/t/ours.so")) == "/t/ours.so:/x/other.so"


def test_more_ranks_than_cores_make_mpich_yield_and_open_mpi_oversubscribe():
    assert CVARS.items() <= launch.job(MPICH, 3, ["a"], None).env.items()
    assert not CVARS.keys() & launch.job(MPICH, 2, ["a"], None).env.keys()
    assert not CVARS.keys() & launch.job(MPICH, 3, ["a"], None, yields=False).env.keys()
    assert "--oversubscribe" in launch.job(OPENMPI, 3, ["a"], None).argv


def test_a_setting_of_the_user_beats_ours(monkeypatch):
    monkeypatch.setenv("OMPI_MCA_osc", "sm")
    assert launch.job(OPENMPI, 2, ["a"], None).env["OMPI_MCA_osc"] == "sm"


def test_a_missing_library_is_named_with_its_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path / "none"))
    with pytest.raises(Exception, match="libtombolo_mpi_mpich.so is not in .*none"):
        launch.job(MPICH, 2, ["a"], Choice())
