# SPDX-License-Identifier: Apache-2.0
"""Programs of families started by the launcher of an MPI: on this host, and on two hosts: two network
namespaces, each with a name of its own, between which there is nothing but TCP."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dsm_hosts_test import CUT, INTO, LIMIT, TWO_HOSTS, UNSHARE, wait_until_ended
from tombolo import launch, libraries, mpis, paths, svp

COMMAND = [sys.executable, "-P", str(Path(svp.__file__).parent / "__main__.py")]
SETTINGS = {
    "TOMBOLO_SVP_WORKERS": "1",
    "TOMBOLO_SVP_MEMORY": "4MiB",
    "UCX_TLS": "tcp,self",  # the two hosts have one kernel: not by its shared memory
    "UCX_NET_DEVICES": "veth0",
    "FI_PROVIDER": "tcp",
}

# Processes 0 and 1 are on one host, 2 and 3 on the other.
PARTS = r"""
#include <signal.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string>
#include "tombolo/svp.hpp"
using namespace tombolo::svp;

#define CHECK(condition) \
  if (!(condition)) { std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); std::_Exit(3); }

static std::string text_of(const Exit& exit) {
  try { exit.rethrow(); } catch (const std::exception& error) { return error.what(); }
  return "";
}

static void hello() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  std::printf("process %u on %s\n", Job::here().rank(), host);
  std::fflush(stdout);
}
static void scale(Index i, In<int> by, InArray<double> from, OutArray<double> to, InOutArray<int> count) {
  const auto n = static_cast<std::size_t>(i);
  to[n] = from[n] * by;
  count[n] += by;
}
static int data(Job& job) {
  for (const std::size_t n : {1, 100, 40000})
    for (unsigned process = 0; process < job.processes(); ++process)
      for (std::size_t way = 0; way < std::size(transport_names); ++way) {
        std::vector<double> from(n);
        std::iota(from.begin(), from.end(), 1.0);
        SharedArray<double> shared_from(n), shared_to(n);
        std::copy(from.begin(), from.end(), shared_from.begin());
        std::vector<double> to(n, -1);
        std::vector<int> count(n, 5), other(n, 7);
        const Place place = job.place(process, static_cast<Transport>(way));
        const Range range{.limit = static_cast<Index>(n)};
        auto plain = create(place, range, remote<&scale>, 3, from, to, count);
        auto shared = create(place, range, remote<&scale>, 4, std::span<const double>(shared_from),
                             std::span<double>(shared_to), other);
        CHECK(shared.sync().done() && plain.sync().done());
        for (std::size_t i = 0; i < n; ++i)
          CHECK(to[i] == 3 * from[i] && count[i] == 8 && shared_to[i] == 4 * from[i] && other[i] == 11);
      }
  for (unsigned process = 0; process < job.processes(); ++process) {
    auto family = create(job.place(process), remote<&hello>);
    CHECK(family.sync().done());
  }
  return 0;
}

static void throws(Index i) { if (i == 3) throw std::runtime_error("number three"); }
static void breaks(Index i) { if (i == 5) break_family(50); }
static void for_ever(Index) { checkpoint(); }
static std::atomic<int> blocked{0};
static void tree(In<int> levels, In<unsigned> width) {
  Job& job = Job::here();
  if (levels == 0) {
    struct Alive { Alive() { ++blocked; } ~Alive() { --blocked; } } alive;
    Global<int> never;
    auto reader = create([](Global<int>& value) { value.read(); }, never);
    never.read();
  }
  using Child = decltype(create(Place(), remote<&tree>, *levels, *width));
  std::vector<std::unique_ptr<Child>> children;
  for (unsigned i = 0; i < width; ++i)
    children.emplace_back(new Child(create(job.place(i % job.processes()), remote<&tree>, levels - 1, *width)));
  for (auto& child : children) child->sync();
}
static void count_blocked(Out<int> count) { *count = blocked; }
static int blocked_in_all(Job& job) {
  int all = 0, count = 0;
  for (unsigned process = 0; process < job.processes(); ++process) {
    auto family = create(job.place(process), remote<&count_blocked>, count);
    family.sync();
    all += count;
  }
  return all;
}
static int ends(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    auto failed = create(job.place(process), {.limit = 5}, remote<&throws>);
    CHECK(text_of(failed.sync()).find("number three") != std::string::npos);
    auto broken = create(job.place(process), {.limit = unbounded}, remote<&breaks>);
    const Exit exit = broken.sync();
    CHECK(exit.reason == ExitReason::broken && exit.value == 50);
    auto killed = create(job.place(process), {.limit = unbounded}, remote<&for_ever>);
    killed.kill();
    CHECK(killed.sync().reason == ExitReason::killed);
  }
  std::puts("all ended");
  return 0;
}
// Leaves that block for ever: 10,000 of them on all processes.
static int many(Job& job) {
  auto all = create(job.place(job.processes() - 1), remote<&tree>, 4, 10u);
  while (blocked_in_all(job) != 10000) usleep(10000);
  all.kill();
  CHECK(all.sync().reason == ExitReason::killed);
  CHECK(blocked_in_all(job) == 0);
  std::puts("all ended");
  return 0;
}

static void add_up(Index i, In<long> by, Global<long>& start, SharedEnd<long>& sum) {
  sum.write(sum.read() + by * i + start.read());
}
using Large = std::array<long, 5000>;  // several letters
static void turn(SharedEnd<Large>& large) {
  Large numbers = large.read();
  std::swap(numbers.front(), numbers.back());
  large.write(numbers);
}
static void reads(Global<long>& never) { never.read(); }
// Values before and after the create, taken before and after the sync; a kill of a blocked thread.
static int channels(Job& job) {
  for (unsigned process = 0; process < job.processes(); ++process) {
    for (const Transport way : {Transport::best, Transport::stream})
      for (const bool early : {true, false}) {
        Global<long> start;
        Shared<long> sum(5);
        if (early) start.write(100);
        auto family = create(job.place(process, way), {.limit = 3}, remote<&add_up>, 10, start, sum);
        if (!early) { usleep(1000); start.write(100); CHECK(sum.read() == 335); }
        CHECK(family.sync().done() && sum.read() == 335);
      }
    Shared<Large> large;
    auto turner = create(job.place(process), remote<&turn>, large);
    Large numbers;
    std::iota(numbers.begin(), numbers.end(), 0);
    large.write(numbers);
    CHECK(large.read()[0] == 4999 && turner.sync().done());
    Global<long> never;
    auto waiting = create(job.place(process), remote<&reads>, never);
    usleep(1000);
    waiting.kill();
    CHECK(waiting.sync().reason == ExitReason::killed);
  }
  std::puts("all ended");
  return 0;
}

static void dies() { signal(SIGKILL, SIG_DFL); raise(SIGKILL); }
// Of a process that is gone: its families fail, new ones too, and others run.
static int lost(Job& job) {
  auto waiting = create(job.place(3), {.limit = unbounded}, remote<&for_ever>);
  Global<long> never;
  Shared<long> last(0);
  auto reading = create(job.place(3), remote<&add_up>, 1, never, last);
  std::printf("waits %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  bool is_there = true;
  try { last.read(); } catch (const NoValue&) { is_there = false; }
  const std::string how = text_of(waiting.sync());
  CHECK(!is_there && text_of(reading.sync()) == how);
  auto refused = create(job.place(3), remote<&hello>);
  CHECK(text_of(refused.sync()) == how);
  auto here = create(job.place(1), remote<&hello>);
  CHECK(here.sync().done());
  std::printf("%s\n", how.c_str());
  return 7;
}
static int killed(Job& job) {
  auto dying = create(job.place(job.processes() - 1), remote<&dies>);
  std::printf("%s\n", text_of(dying.sync()).c_str());
  return 7;
}

static int throws_itself(Job&) { throw std::runtime_error("of the program"); }

int main(int, char** argv) try {
  const std::string part = argv[1];
  return run(part == "throws"     ? throws_itself
             : part == "data"     ? data
             : part == "ends"     ? ends
             : part == "many"     ? many
             : part == "channels" ? channels
             : part == "lost"     ? lost
                                  : killed);
} catch (const std::runtime_error& error) {
  std::puts(error.what());
}
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    """The archive and the modules, built before any test has a time limit."""
    for name in (svp.ARCHIVE, "libtombolo_svp_mpich.so", "libtombolo_svp_openmpi.so"):
        libraries.need_program(name)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")

    def compile_cpp(name: str, text: str, *options: str) -> Path:
        source, program = folder / f"{name}.cpp", folder / name
        if not program.exists():
            source.write_text(text)
            subprocess.run(["c++", "-O1", "-Wall", *options, source, "-o", program, *svp.flags()], check=True)
        return program

    return compile_cpp


@pytest.fixture(scope="module")
def parts(compiled) -> Path:
    return compiled("parts", PARTS)


def found(key: str) -> mpis.Mpi:
    mpi = mpis.find(key)
    if mpi is None:
        pytest.skip(f"{key} is not installed here")
    return mpi


def environment(**more: str) -> dict[str, str]:
    return mpis.root_may_launch() | launch.MPICH_YIELDS | {"TOMBOLO_SVP_MEMORY": "4MiB"} | more


def ran(*argv, **more: str) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, env=environment(**more), timeout=LIMIT)


# --- One host -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", mpis.KEYS)
@pytest.mark.parametrize("share", ["host", "none"])
def test_processes_of_an_mpi_are_one_job(parts, key, share):
    mpi = found(key)
    argv = [*COMMAND, "svp", "run", "-n", "3", "--workers", "1", "--mpi", key, parts]
    done = ran(*argv, "data", TOMBOLO_SVP_SHARE=share)
    assert done.returncode == 0, (mpi.label, done.stderr)
    assert sorted(line[:9] for line in done.stdout.splitlines()) == [f"process {i}" for i in range(3)]


@pytest.mark.parametrize("key", mpis.KEYS)
def test_channels_go_by_each_mpi(parts, key):
    mpi = found(key)
    done = ran(*COMMAND, "svp", "run", "-n", "2", "--workers", "1", "--mpi", key, parts, "channels",
               TOMBOLO_SVP_SHARE="none")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "all ended\n"), (mpi.label, done.stderr)


@pytest.mark.parametrize("key", mpis.KEYS)
def test_an_exception_of_the_program_leaves_the_mpi_finalized(parts, key):
    mpi = found(key)
    done = ran(*COMMAND, "svp", "run", "-n", "2", "--workers", "1", "--mpi", key, parts, "throws")
    # Its launcher complains of a process that has not finalized it.
    assert (done.returncode, done.stdout) == (0, "of the program\n"), (mpi.label, done.stderr)


def test_the_command_runs_in_each_process_of_mpiexec(parts):
    mpiexec = found("mpich").launcher
    done = ran(mpiexec, "-n", 2, *COMMAND, "svp", "run", "--stats", "--workers", 1, parts, "ends")
    assert (done.returncode, done.stdout) == (0, "all ended\n"), done.stderr
    told = re.findall(r"stats rank=(\d) families_created=\d+", done.stderr)
    assert sorted(told) == ["0", "1"]
    refused = ran(mpiexec, "-n", 2, *COMMAND, "svp", "run", "-n", 2, parts, "ends")
    assert refused.returncode != 0
    assert "its -n says how many there are" in refused.stderr


def test_processes_that_are_alone_for_the_mpi_are_refused(parts):
    mpi = found("mpich")
    other = found("openmpi").prefix / "lib/libmpi.so.40"
    done = ran(mpi.launcher, "-n", 2, parts, "ends", TOMBOLO_SVP_MPI=str(other))
    assert done.returncode != 0 and done.stdout == ""
    assert "has started 2 processes, and each is alone for the MPI that was found" in done.stderr


def test_a_library_that_is_no_mpi_is_named(parts):
    done = ran(found("mpich").launcher, "-n", 2, parts, "ends", TOMBOLO_SVP_MPI="/no/libmpi.so")
    assert done.returncode != 0
    assert "TOMBOLO_SVP_MPI names no library: /no/libmpi.so" in done.stderr


@pytest.mark.parametrize("share", ["host", "none"])
def test_a_killed_process_ends_the_job_with_a_message(parts, share):
    done = ran(found("mpich").launcher, "-n", 3, parts, "killed", TOMBOLO_SVP_SHARE=share)
    assert done.returncode != 0
    assert "signal 9" in done.stdout + done.stderr, "by the launcher"
    wait_until_ended(parts)


# --- Two hosts ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """The command line that runs a program with two processes on each of two hosts."""
    mpi = found("mpich")
    if any(
        subprocess.run(["sh", "-c", f"command -v {tool}"], capture_output=True).returncode
        for tool in ("unshare", "nsenter", "ip")
    ):
        pytest.skip("two hosts need unshare, nsenter and ip")
    into = tmp_path_factory.mktemp("hosts") / "into"
    into.write_text(INTO)
    into.chmod(0o755)
    words = [*UNSHARE, "sh", "-c", TWO_HOSTS, "sh", "true"]
    made = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    if made.returncode != 0:
        pytest.skip(f"this host does not allow network namespaces: {made.stderr.strip()[-200:]}")

    def command(*program, around=()):
        argv = [mpi.launcher, "-localhost", "10.77.0.1", "-launcher", "ssh", "-launcher-exec", into,
                "-hosts", "10.77.0.1,10.77.0.2", "-n", "4", "-ppn", "2"]  # fmt: skip
        return [*UNSHARE, "sh", "-c", TWO_HOSTS, "sh", *around, *argv, *program]

    return command


COUNT = ["sh", "-c", '"$@" || exit; ip -s link show veth0 | grep -A1 TX >&2', "sh"]


def test_families_cross_hosts(parts, hosts):
    done = ran(*hosts(parts, "data", around=COUNT), **SETTINGS)
    assert done.returncode == 0, done.stderr
    places = ["host-a", "host-a", "host-b", "host-b"]
    assert sorted(done.stdout.splitlines()) == [f"process {i} on {h}" for i, h in enumerate(places)]
    assert int(re.search(r"TX:.*\n\s*(\d+)", done.stderr)[1]) > 1_000_000, "arrays crossed the network"


@pytest.mark.parametrize("part", ["ends", "many", "channels"])
def test_ends_kills_and_values_of_channels_cross_hosts(parts, hosts, part):
    done = ran(*hosts(parts, part), **SETTINGS)
    assert (done.returncode, done.stdout) == (0, "all ended\n"), done.stderr


@pytest.mark.parametrize("name", ["matrix", "tree"])
def test_examples_have_the_results_that_they_have_on_one_host(compiled, hosts, name):
    root = paths.checkout()
    program = compiled(name, (root / f"examples/svp/{name}.cpp").read_text(), f"-I{root}")
    here = ran(*COMMAND, "svp", "run", "-n", 4, "--workers", 1, program)
    assert here.returncode == 0, here.stderr
    done = ran(*hosts(program), **SETTINGS)
    assert (done.returncode, done.stdout) == (0, here.stdout), done.stderr


def test_a_host_that_is_cut_off_fails_at_the_sync(parts, hosts, tmp_path):
    trigger = tmp_path / "go"
    around = ["sh", "-c", f'"$@" & until [ -e {trigger} ]; do sleep 0.05; done; {CUT}; wait $!', "sh"]
    job = subprocess.Popen(
        list(map(str, hosts(parts, "lost", around=around))),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**SETTINGS),
        start_new_session=True,
    )  # fmt: skip
    try:
        assert job.stdout.readline().startswith("waits ")
        trigger.touch()
        wait_until_ended(parts)
        # The launcher itself may wait for the other host for longer.
        os.killpg(job.pid, signal.SIGTERM)
        said, told = job.communicate(timeout=LIMIT)
    finally:
        job.kill()
    assert "process 1 on host-a" in said, told
    assert re.search(r"^process 3 of the program \(process \d+ on host host-b\) does not answer", said, re.MULTILINE)
