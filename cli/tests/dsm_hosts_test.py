# SPDX-License-Identifier: Apache-2.0
"""Programs on virtual shared memory with transport mpi: on this host, and on two hosts: two network
namespaces, each with a name of its own, between which there is nothing but TCP."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dsm_calls_test import PAIRS
from dsm_ends_test import ENDLESS
from dsm_test import COMMAND, SUMS
from tombolo import dsm, launch, mpis

LIMIT = 120
# A host that is cut off is noticed after 4 s; the rest is for busy machines.
SILENCE = 30

# The second host's processes are started by the launcher through this, in place of ssh.
INTO = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec nsenter -t $HOST_B --net --uts --mount /bin/sh -c "$*"
"""
# Makes two hosts and runs a command on the first. UCX looks for network devices in /sys. MPICH
# names its memory in /dev/shm by numbers of processes, and Open MPI its folder in TMPDIR: those of
# earlier runs, whose processes had the same numbers, would be in the way.
TWO_HOSTS = """
set -e
hostname host-a
ip link set lo up
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /dev/shm
export TMPDIR=/dev/shm
unshare --net --uts --mount sh -c 'mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /dev/shm; exec sleep 1000' &
export HOST_B=$!
trap 'kill $HOST_B' EXIT
there() { nsenter -t $HOST_B --net --uts --mount "$@"; }
for i in $(seq 100); do grep -q sleep /proc/$HOST_B/comm && break; sleep 0.05; done
ip link add name veth0 type veth peer name veth0 netns $HOST_B
ip addr add 10.77.0.1/24 dev veth0
ip link set veth0 up
there hostname host-b
there ip link set lo up
there ip addr add 10.77.0.2/24 dev veth0
there ip link set veth0 up
for i in $(seq 100); do
  grep -q up /sys/class/net/veth0/operstate && there grep -q up /sys/class/net/veth0/operstate && break
  sleep 0.05
done
set +e
"$@"
"""
UNSHARE = ["unshare", "--map-root-user", "--net", "--uts", "--mount", "--pid", "--fork",
           "--mount-proc", "--kill-child"]  # fmt: skip
SETTINGS = {
    "TOMBOLO_DSM_TRANSPORT": "mpi",
    "TOMBOLO_DSM_MEMORY": "4MiB",
    "TOMBOLO_DSM_CACHE": "64KiB",
    "UCX_TLS": "tcp,self",  # the two hosts have one kernel: not by its shared memory
    "UCX_NET_DEVICES": "veth0",
    "FI_PROVIDER": "tcp",
}

# Each thread appends lines to one stream and writes a file of its own.
LINES = r"""
#include <stdio.h>
#include <tombolo/dsm.h>
#include <unistd.h>

int main(int argc, char** argv) {
  tombolo_dsm_init();
  char host[64] = "", name[512];
  gethostname(host, sizeof host - 1);
  printf("thread %u on %s\n", tombolo_dsm_thread(), host);
  snprintf(name, sizeof name, "%s/%u", argv[argc - 1], tombolo_dsm_thread());
  FILE* file = fopen(name, "w");
  fprintf(file, "%u\n", tombolo_dsm_thread());
  fclose(file);
  tombolo_dsm_finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def compile_c(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")

    def compile_text(name: str, text: str) -> Path:
        source, program = folder / f"{name}.c", folder / name
        source.write_text(text)
        options = ["-O1", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *options, source, "-o", program, *dsm.flags()], check=True)
        return program

    return compile_text


@pytest.fixture(scope="module")
def sums(compile_c):
    return compile_c("sums", SUMS)


@pytest.fixture(scope="module", params=mpis.KEYS)
def mpi(request):
    found = mpis.find(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed here")
    if found.kind == "openmpi" and found.version.startswith("4."):
        pytest.skip("Open MPI 4 is refused (test_open_mpi_4_is_refused)")
    return found


# Lists the files that are left there.
SMALL = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && { "$@"; status=$?; ls /dev/shm; exit $status; }'


@pytest.fixture(scope="module")
def small_memory() -> list[str]:
    """In front of a command: with 64 MiB of shared memory, which is its own."""
    apart = ["unshare", "--map-root-user", "--mount", "sh", "-c", SMALL, "sh"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        pytest.skip("this host does not allow a folder of its own")
    return apart


def run(*words, **environment) -> subprocess.CompletedProcess:
    argv = [*COMMAND, "dsm", "run", "--transport", "mpi", *map(str, words)]
    env = os.environ | environment
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=LIMIT)


# --- One host -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("threads", "servers"), [(1, 0), (3, 0), (2, 2), (1, 1)])
def test_the_command_starts_the_program_by_an_mpi(sums, mpi, threads, servers):
    sizes = ["--memory", "4MiB", "--cache", "64KiB"]
    done = run("-n", threads, "--servers", servers, "--mpi", mpi.key, *sizes, "--stats", sums)
    assert done.returncode == 0, done.stderr
    ranks = threads * (threads + 1) // 2
    assert done.stdout == f"499500 {10 * threads} {ranks} 0 {threads - 1} moved\n"
    told = [line for line in done.stderr.splitlines() if line.startswith("tombolo: stats ")]
    assert len(told) == threads, done.stderr
    assert all("transport=mpi protocol=regional" in line for line in told)


@pytest.mark.parametrize(
    ("cache", "told"), [("0", "cache of 0 bytes is too small"), ("1MiB", "bytes of /dev/shm, which has")]
)
def test_a_job_that_is_refused_leaves_nothing_in_shared_memory(sums, small_memory, cache, told):
    if mpis.find("mpich") is None:
        pytest.skip("mpich is not installed here")
    words = ["-n", "2", "--mpi", "mpich", "--memory", "256MiB", "--cache", cache, str(sums)]
    argv = [*small_memory, *COMMAND, "dsm", "run", "--transport", "mpi", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode != 0
    assert done.stderr.count("tombolo: ") == 1 and told in done.stderr, done.stderr
    assert done.stdout == ""


def test_open_mpi_4_is_refused(sums):
    found = mpis.find("openmpi-apt")
    if found is None or not found.version.startswith("4."):
        pytest.skip("Open MPI 4 is not installed here")
    done = run("--mpi", "openmpi-apt", sums)
    assert done.returncode != 0
    assert "needs Open MPI 5 or MPICH" in done.stderr


def test_a_library_that_is_no_mpi_is_named(sums):
    done = subprocess.run(
        [sums], capture_output=True, text=True, timeout=LIMIT,
        env=os.environ | SETTINGS | {"TOMBOLO_DSM_MPI": "/no/libmpi.so"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "/no/libmpi.so" in done.stderr and "TOMBOLO_DSM_MPI" in done.stderr


def test_our_own_launcher_cannot_start_it(sums):
    argv = dsm.command(2, [str(sums)])
    done = subprocess.run(argv, capture_output=True, text=True, env=os.environ | SETTINGS, timeout=LIMIT)
    assert done.returncode == 1
    assert "transport mpi needs processes that the host MPI has started" in done.stderr


def test_sequential_consistency_is_refused_by_name(sums, mpi):
    done = run("-n", 2, "--mpi", mpi.key, "--protocol", "sequential", sums)
    assert done.returncode != 0
    assert done.stdout == ""
    told = [line for line in done.stderr.splitlines() if line.startswith("tombolo: ")]
    assert len(told) == 1, done.stderr
    assert "protocol sequential needs threads that answer each other while they compute" in told[0]
    assert "use regional, or transport window" in told[0]


def test_some_of_the_threads_meet(compile_c, mpi):
    done = run("-n", 3, "--mpi", mpi.key, "--memory", "4MiB", "--cache", "64KiB", compile_c("pairs", PAIRS))
    assert (done.returncode, done.stdout) == (0, "210 3 threads\n"), done.stderr


@pytest.mark.parametrize("victim", ["thread", "server"])
def test_a_killed_process_ends_all(compile_c, victim):
    if mpis.find("mpich") is None:
        pytest.skip("mpich is not installed here")
    program = compile_c("endless", ENDLESS)
    argv = [*COMMAND, "dsm", "run", "--transport", "mpi", "--mpi", "mpich", "-n", "2", "--servers", "1",
            "--memory", "4MiB", "--cache", "64KiB", program]  # fmt: skip
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    threads = dict(map(int, job.stdout.readline().split()) for _ in range(2))
    here = [int(p.name) for p in Path("/proc").glob("[0-9]*") if runs(p, program)]
    (server,) = set(here) - set(threads.values())
    os.kill(threads[1] if victim == "thread" else server, signal.SIGKILL)
    told, _ = job.communicate(timeout=LIMIT)
    assert job.returncode != 0
    assert "signal 9" in told, "by the launcher"
    wait_until_ended(program)


# --- Two hosts ------------------------------------------------------------------------------------


# Not MPICH 4, Debian's: over TCP by UCX its MPI_Finalize may wait for ever (CAVEATS).
@pytest.fixture(scope="module", params=["mpich"])
def hosts(request, tmp_path_factory):
    """A function that gives the command line for a program with two processes on each of two hosts."""
    found = mpis.find(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed here")
    if sys.platform != "linux" or any(
        subprocess.run(["sh", "-c", f"command -v {tool}"], capture_output=True).returncode
        for tool in ("unshare", "nsenter", "ip")
    ):
        pytest.skip("two hosts need unshare, nsenter and ip")
    folder = tmp_path_factory.mktemp("hosts")
    into = folder / "into"
    into.write_text(INTO)
    into.chmod(0o755)
    made = subprocess.run(
        [*UNSHARE, "sh", "-c", TWO_HOSTS, "sh", "true"], capture_output=True, text=True, timeout=LIMIT
    )
    if made.returncode != 0:
        pytest.skip(f"this host does not allow network namespaces: {made.stderr.strip()[-200:]}")

    def command(program, *arguments, around=()):
        argv = [found.launcher, "-localhost", "10.77.0.1", "-launcher", "ssh", "-launcher-exec", into,
                "-hosts", "10.77.0.1,10.77.0.2", "-n", "4", "-ppn", "2"]  # fmt: skip
        words = ["sh", "-c", TWO_HOSTS, "sh", *around, *argv, program, *arguments]
        return [*UNSHARE, *map(str, words)]

    return command


def environment(**more):
    return os.environ | launch.MPICH_YIELDS | SETTINGS | more


@pytest.mark.parametrize("servers", [0, 1])
def test_two_hosts_have_one_memory(sums, hosts, servers):
    count = ["sh", "-c", '"$@" || exit; ip -s link show veth0 | grep -A1 TX >&2', "sh"]
    env = environment(TOMBOLO_DSM_SERVERS=str(servers))
    done = subprocess.run(hosts(sums, around=count), capture_output=True, text=True, env=env, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    n = 4 - servers
    assert done.stdout == f"499500 {10 * n} {n * (n + 1) // 2} 0 {n - 1} moved\n"
    sent = int(re.search(r"TX:.*\n\s*(\d+)", done.stderr)[1])
    assert sent > 20_000, "the pages of the program crossed the network"


def test_output_and_files_are_as_on_one_host(compile_c, hosts, tmp_path):
    program = compile_c("lines", LINES)
    done = subprocess.run(hosts(program, tmp_path), capture_output=True, text=True, env=environment(), timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    places = ["host-a", "host-a", "host-b", "host-b"]
    assert sorted(done.stdout.splitlines()) == [f"thread {i} on {h}" for i, h in enumerate(places)]
    assert [(tmp_path / str(i)).read_text() for i in range(4)] == ["0\n", "1\n", "2\n", "3\n"]


LOST = r"tombolo: rank 0: host host-b, where rank [23] \(process \d+\) of the program runs, does not answer any more"
# By the launcher, whose connection to the other host is closed at the same time, or by us.
GONE = (
    r"\[mpiexec@host-a\].*: (assert \(!closed\) failed|process manager error waiting for completion)"
    r"|tombolo: rank 0: rank [23] \(process \d+ on host host-b\) of the program has ended"
)
CUT = "ip link set veth0 down"
# As if the host had lost its power: all that runs on it is gone at once.
OFF = (
    "b=$(readlink /proc/$HOST_B/ns/net); for p in $(ls /proc | grep '^[0-9]*$'); do "
    '[ "$(readlink /proc/$p/ns/net)" = "$b" ] && kill -9 $p; done'
)


@pytest.mark.parametrize("gone", [CUT, OFF], ids=["cut off", "switched off"])
def test_a_host_that_goes_away_ends_the_job_with_a_message(compile_c, hosts, gone, tmp_path):
    program = compile_c("endless", ENDLESS)
    trigger = tmp_path / "go"
    around = ["sh", "-c", f'"$@" & until [ -e {trigger} ]; do sleep 0.05; done; {gone}; wait $!', "sh"]
    job = subprocess.Popen(
        hosts(program, around=around),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(4):
            assert job.stdout.readline()
        trigger.touch()
        wait_until_ended(program)
        if gone == CUT:
            # The launcher itself may wait for the other host for longer.
            os.killpg(job.pid, signal.SIGTERM)
        _, told = job.communicate(timeout=LIMIT)
    finally:
        job.kill()
    assert job.returncode != 0
    if gone == CUT:
        (line,) = (line for line in told.splitlines() if line.startswith("tombolo: "))
        assert re.fullmatch(LOST, line)
    else:
        # Before the kernels have closed the connections the host is silent, too.
        assert re.search(f"{GONE}|{LOST}", told), told


def wait_until_ended(program: Path) -> None:
    end = time.monotonic() + SILENCE
    while time.monotonic() < end:
        if not any(runs(entry, program) for entry in Path("/proc").glob("[0-9]*")):
            return
        time.sleep(0.1)
    raise AssertionError("processes of the program go on")


def runs(entry: Path, program: Path) -> bool:
    try:
        return (entry / "exe").readlink() == program and alive_now(entry)
    except OSError:
        return False


def alive_now(entry: Path) -> bool:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
