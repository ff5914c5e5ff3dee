# SPDX-License-Identifier: Apache-2.0
"""Windows where some processes have no Tombolo, of worlds over two hosts: two network namespaces, which do
not see each other's marks. Each run has a time limit: one that hangs fails.
"""

import subprocess

import pytest
from company_test import LIMIT, REASON, WINDOWS, need, only, passes, prepare, program, spawn, told_before
from dsm_hosts_test import INTO, TWO_HOSTS, UNSHARE
from tombolo import launch

SETTINGS = {
    "UCX_TLS": "tcp,self",  # the two hosts have one kernel: not by its shared memory
    "UCX_NET_DEVICES": "veth0",
    "FI_PROVIDER": "tcp",
}
RANKS = 4  # two on each host


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """A function that gives the job of a command of all ranks under an MPI."""
    into = tmp_path_factory.mktemp("hosts") / "into"
    into.write_text(INTO)
    into.chmod(0o755)
    around = [*UNSHARE, "sh", "-c", TWO_HOSTS, "sh"]
    try:
        made = subprocess.run([*around, "true"], capture_output=True, text=True, timeout=LIMIT)
    except FileNotFoundError:
        pytest.skip("two hosts need unshare")
    if made.returncode != 0:
        pytest.skip(f"two hosts need unshare, nsenter, ip and a kernel that allows it: {made.stderr[-200:]}")

    def job(key: str, command: list[str]) -> launch.Job:
        made = prepare(key, command, ranks=RANKS, **SETTINGS)
        made.argv[:] = [word for word in made.argv if word != "--oversubscribe"]  # the first host takes all
        made.argv[1:1] = {
            "mpich": ["-localhost", "10.77.0.1", "-launcher", "ssh", "-launcher-exec", str(into),
                      "-hosts", "10.77.0.1,10.77.0.2", "-ppn", "2"],
            "openmpi": ["--prtemca", "plm_ssh_agent", str(into), "--host", "10.77.0.1:2,10.77.0.2:2",
                        "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"],
        }[key]  # fmt: skip
        return launch.Job([*around, *made.argv], made.env, made.mark)

    return job


@pytest.mark.parametrize("ranks", ["0", "3", "01", "02", "123"])
def test_of_ranks_with_tombolo_and_without_those_that_have_it_share_windows_of_ours(hosts, ranks):
    told = passes(hosts("mpich", [*only("mpich", ranks), program("mpich"), "world"]))
    each = len(ranks) * WINDOWS
    assert (told.served, told.forwarded, told.reasons) == (2 * each, each, (REASON,)), told


@pytest.mark.parametrize("key", ["mpich", "openmpi"])
def test_of_ranks_that_all_have_it_all_windows_are_ours(hosts, key):
    told = passes(hosts(key, [program(key), "world"]))
    assert (told.served, told.forwarded) == (RANKS * 3 * WINDOWS, 0), told


def test_windows_with_spawned_processes_are_the_mpis_where_parents_are_on_several_hosts(hosts):
    """Those of each side alone are ours."""
    told = passes(hosts("mpich", spawn("mpich", "last", [])))
    ours = (RANKS + 2) * 2 * WINDOWS
    assert (told.served, told.forwarded, told.reasons) == (ours, ours, (REASON,)), told


def test_under_open_mpi_ranks_without_tombolo_are_named_by_one_that_waits_for_them(hosts):
    told = told_before(hosts("openmpi", [*only("openmpi", "12"), program("openmpi"), "world"]), "still waits for")
    assert "rank 1: MPI_Win_allocate: still waits for ranks 0, 3 of 4 processes" in told, told


# Rank 0 never calls MPI_Init.
SESSIONS = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  const int first = atoi(getenv("PMI_RANK")) == 0;
  int* memory = NULL;
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Win win;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  if (!first) MPI_Init(&argc, &argv);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Win_allocate(8, 4, MPI_INFO_NULL, comm, &memory, &win);
  MPI_Win_free(&win);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  if (!first) MPI_Finalize();
  MPI_Session_finalize(&session);
}
"""


def test_a_rank_with_a_session_alone_keeps_no_other_one_waiting(hosts, tmp_path):
    source, sessions = tmp_path / "sessions.c", tmp_path / "sessions"
    source.write_text(SESSIONS)
    subprocess.run([need("mpich").mpicc, source, "-o", sessions], check=True)
    passes(hosts("mpich", [str(sessions)]))
