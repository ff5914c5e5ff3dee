# SPDX-License-Identifier: Apache-2.0
"""Windows over several hosts that see one pool. A host is here a set of processes with
numbers of its own: containers of one machine, made by unshare."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from faults_test import passes, prepare
from tombolo import stats

APART = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
# The first rank where it is, each of the others in a namespace of its own.
HOSTS = f'case "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" in 0) exec "$0" "$@";; *) exec {" ".join(APART)} "$0" "$@";; esac'
WINDOWS = 4


@pytest.fixture
def pool():
    if subprocess.run([*APART, "true"], capture_output=True).returncode != 0:
        pytest.skip("this host does not allow a process its own namespace")
    path = Path(f"/dev/shm/tombolo-test-pool-{os.getpid()}")

    def make(number=0, kib=65536):
        made = path.with_name(f"{path.name}-{number}")
        with made.open("wb") as file:
            file.truncate(kib << 10)
        return str(made)

    yield make
    for made in path.parent.glob(f"{path.name}*"):
        made.unlink()


def run(ranks, around=HOSTS, threads="single", **environment):
    made = prepare(
        "several_hosts",
        WINDOWS,
        threads,
        ranks=ranks,
        machine="flushed",
        around=["sh", "-c", around],
        TOMBOLO_STATS="json",
        UCX_TLS="tcp,self",  # the host MPI, too, must not take them for one host
        MPIR_CVAR_NOLOCAL="1",
        **environment,
    )
    outcome = passes(made)
    counts = {(one.served, one.forwarded, one.reasons) for one in stats.parse(outcome.stderr)}
    assert len(counts) == 1, outcome.stderr
    served, forwarded, reasons = counts.pop()
    return served, forwarded, ", ".join(reasons), outcome.stderr


@pytest.mark.parametrize("atomics", [None, "full", "none"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_windows_with_memory_in_the_pool_are_served(pool, ranks, atomics):
    choice = {"TOMBOLO_ATOMICS": atomics} if atomics else {}
    served, forwarded, why, _ = run(ranks, TOMBOLO_POOL=pool(), **choice)
    assert (served, forwarded) == (WINDOWS, 1)
    assert why == "memory of the program on several hosts"


def test_without_a_pool_they_go_to_the_host_mpi(pool):
    pool()
    served, forwarded, why, _ = run(2)
    assert (served, forwarded) == (0, WINDOWS + 1)
    assert "without a pool" in why


def test_hosts_with_different_pools_say_so_and_go_to_the_host_mpi(pool):
    other = HOSTS.replace("unshare", f"env TOMBOLO_POOL={pool(1)} unshare", 1)
    served, forwarded, why, told = run(2, around=other, TOMBOLO_POOL=pool(0))
    assert (served, forwarded) == (0, WINDOWS + 1)
    assert "no room in one pool" in why
    assert "gone or sealed" in told


@pytest.mark.parametrize("bad", ["small", "other data"])
def test_a_pool_that_only_one_host_cannot_use_is_no_trap(pool, bad):
    path = pool(1, kib=4 if bad == "small" else 65536)
    if bad == "other data":
        with Path(path).open("r+b") as file:
            file.write(b"something else")
    other = HOSTS.replace("unshare", f"env TOMBOLO_POOL={path} unshare", 1)
    served, forwarded, _, told = run(4, around=other, TOMBOLO_POOL=pool(0))
    assert (served, forwarded) == (0, WINDOWS + 1)
    assert path in told


def test_a_pool_of_a_host_that_takes_no_part_is_left_alone(pool):
    path = pool()
    # All processes here are of one boot: only the number in the header tells another host.
    served, _, _, _ = run(2, TOMBOLO_POOL=path)
    assert served == WINDOWS
    with Path(path).open("r+b") as file:
        header = bytearray(file.read(128))
        header[40] ^= 1  # the manager
        header[64] = 1  # bytes of the first record, and its boot
        header[104] ^= 1
        file.seek(0)
        file.write(header)
    served, forwarded, _, told = run(2, TOMBOLO_POOL=path)
    assert (served, forwarded) == (0, WINDOWS + 1)
    assert "another host" in told


def test_programs_with_threads_are_served_with_atomics_of_the_pool_only(pool):
    served, _, why, _ = run(2, threads="multiple", TOMBOLO_POOL=pool())
    assert served == 0 and "built from loads and stores" in why
    served, *_ = run(2, threads="multiple", TOMBOLO_POOL=pool(1), TOMBOLO_ATOMICS="full")
    assert served == WINDOWS


def test_a_pool_that_is_too_small_is_said_and_left_alone(pool):
    served, forwarded, why, told = run(2, TOMBOLO_POOL=pool(kib=64))
    assert (served, forwarded) == (0, WINDOWS + 1)
    assert "no room in one pool" in why
    assert re.search(r"has \d+ bytes in all; \d+ are needed", told)
