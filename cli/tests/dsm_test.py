# SPDX-License-Identifier: Apache-2.0
"""Programs on virtual shared memory, started by the command."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tombolo import dsm, dsm_bench, libraries, paths
from tombolo.app import app
from tombolo.commands import bench_dsm
from tombolo.dsm import Choice
from tombolo.dsm_bench import Contestant, Kernel, Measured
from tombolo.errors import UserError
from typer.testing import CliRunner

COMMAND = [sys.executable, "-P", str(Path(dsm.__file__).parent / "__main__.py")]
TRANSPORTS = [["--transport", "map"], ["--transport", "window"]]
ON_MACHINES = [["--transport", "window", "--machine", name] for name in ("flushed", "stale")]

SUMS = r"""
#include <stdio.h>
#include <string.h>
#include <tombolo/dsm.h>

int main(int argc, char** argv) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread(), n = tombolo_dsm_threads();
  double* const numbers = tombolo_dsm_malloc(1000 * sizeof *numbers);
  tombolo_dsm_mutex_t mutex = tombolo_dsm_mutex_create();
  for (unsigned i = me; i < 1000; i += n) numbers[i] = i;
  tombolo_dsm_barrier_wait();
  double all = 0;
  for (unsigned i = 0; i < 1000; ++i) all += numbers[i];
  tombolo_dsm_barrier_wait();
  for (int i = 0; i < 10; ++i) {
    tombolo_dsm_mutex_lock(mutex);
    tombolo_dsm_record(numbers, sizeof *numbers);
    numbers[0] += 1;
    tombolo_dsm_mutex_unlock(mutex);
  }
  tombolo_dsm_barrier_wait();
  char* text = tombolo_dsm_malloc(10);
  if (me == 0) strcpy(text, "moved");
  text = tombolo_dsm_realloc(text, 100000);
  tombolo_dsm_barrier_wait();
  if (argc > 1 && me == 1) return argv[1][0] - '0';
  const double sum = tombolo_dsm_sum(me + 1);
  const double least = tombolo_dsm_min(me), most = tombolo_dsm_max(me);
  if (me == n - 1) printf("%g %g %g %g %g %s\n", all, numbers[0], sum, least, most, text);
  tombolo_dsm_free(text);
  tombolo_dsm_finalize();
  return 0;
}
"""

ENDLESS = r"""
#include <stdio.h>
#include <tombolo/dsm.h>
#include <unistd.h>

int main(void) {
  tombolo_dsm_init();
  printf("%u %d\n", tombolo_dsm_thread(), (int)getpid());
  fflush(stdout);
  if (tombolo_dsm_thread() == 1) pause();
  tombolo_dsm_barrier_wait();
  return 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    """The library and the launcher, built before any test has a time limit."""
    libraries.need_program(dsm.LIBRARY)
    libraries.need_program(dsm.LAUNCHER)


@pytest.fixture(scope="module")
def compile_c(tmp_path_factory):
    def compile_text(name: str, text: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        source, program = folder / f"{name}.c", folder / name
        source.write_text(text)
        options = ["-O1", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *options, source, "-o", program, *dsm.flags()], check=True)
        return program

    return compile_text


@pytest.fixture(scope="module")
def sums(compile_c):
    return compile_c("sums", SUMS)


@pytest.fixture(scope="module")
def endless(compile_c):
    return compile_c("endless", ENDLESS)


def run(*words, **environment) -> subprocess.CompletedProcess:
    env = os.environ | environment
    argv = [*COMMAND, "dsm", "run", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120)


@pytest.mark.parametrize("how", [*TRANSPORTS, *ON_MACHINES], ids=lambda words: words[-1])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_memory_locks_and_sums(sums, how, threads):
    done = run("-n", threads, *how, "--memory", "4MiB", "--cache", "64KiB", sums)
    if "flushed" in how and "clflush" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    ranks = threads * (threads + 1) // 2
    assert done.stdout == f"499500 {10 * threads} {ranks} 0 {threads - 1} moved\n"
    assert done.stderr == ""


def test_a_program_that_is_started_by_itself_has_one_thread(sums):
    done = subprocess.run([sums], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "499500 10 1 0 0 moved\n"), done.stderr


def test_the_status_of_a_thread_that_fails_is_the_programs(sums):
    done = run("-n", 2, sums, "7")
    assert done.returncode == 7
    assert done.stderr == "", "the program itself tells its causes"


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
def test_a_killed_process_ends_all_with_one_message(endless, how):
    before = sorted(os.listdir("/dev/shm"))
    argv = [*COMMAND, "dsm", "run", "-n", "3", *how, str(endless)]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = dict(map(int, job.stdout.readline().split()) for _ in range(3))
    os.kill(pids[1], signal.SIGKILL)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGKILL
    assert told == "tombolo: process 1 was killed by signal 9 (Killed)\n"
    assert not any(alive(pid) for pid in pids.values())
    assert sorted(os.listdir("/dev/shm")) == before


def test_a_thread_that_leaves_before_the_end_is_named_once(sums):
    done = run("-n", 3, sums, "0")
    assert done.returncode == 1
    assert re.fullmatch(
        r"tombolo: rank 0: rank 1 \(process \d+\) of the program has died\n", done.stderr
    )


def test_an_interrupt_ends_all(endless):
    argv = [*COMMAND, "dsm", "run", "-n", "2", str(endless)]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = dict(map(int, job.stdout.readline().split()) for _ in range(2))
    job.send_signal(signal.SIGTERM)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 1
    assert told == "tombolo: interrupted\n"
    assert not any(alive(pid) for pid in pids.values())


def alive(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
def test_stats_are_told_by_each_thread(sums, how):
    done = run("-n", 2, *how, "--stats", sums)
    lines = [line for line in done.stderr.splitlines() if line.startswith("tombolo: stats ")]
    assert len(lines) == 2
    assert all(f"transport={how[-1]} protocol=regional" in line for line in lines)
    assert all("dsm_barriers=" in line for line in lines)
    told = run("-n", 2, *how, sums, TOMBOLO_STATS="json").stderr
    counts = [json.loads(line.split(" ", 2)[2]) for line in told.splitlines()]
    assert {each["rank"] for each in counts} == {"0", "1"}
    if how[-1] == "window":
        assert all(each["dsm_read_faults"] + each["dsm_write_faults"] > 0 for each in counts)
        for each in counts:
            fetched, sent = each["dsm_fetches"] + each["dsm_collected"], each["dsm_diffs"] + each["dsm_puts"]
            assert each["dsm_fetched_bytes"] == 4096 * fetched
            assert each["dsm_sent_bytes"] == 4096 * sent
            assert each["dsm_lock_waits"] == 10


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--transport", "mpi", "true"], "transport mpi"),
        (["--servers", "2", "true"], "memory servers"),
        (["--transport", "best", "true"], "'best' is not a value of TOMBOLO_DSM_TRANSPORT"),
        (["--protocol", "none", "true"], "'none' is not a value of TOMBOLO_DSM_PROTOCOL"),
        (["--machine", "best", "true"], "'best' is not a machine"),
        (["no-such-program"], "'no-such-program' is not a program"),
    ],
)
def test_requests_that_cannot_be_met_are_refused_by_name(words, told):
    done = run(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.startswith("tombolo: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--machine", "stale"], "transport map needs a coherent machine"),
        (["--cache", "0"], "cache of 0 bytes is too small"),
        (["--memory", "some"], "TOMBOLO_DSM_MEMORY is 'some'"),
        (["--memory", "8TiB"], "bytes"),
        (["--transport", "window", "--protocol", "sequential"], "protocol sequential"),
    ],
)
def test_settings_that_cannot_be_are_refused_once(sums, words, told):
    done = run("-n", 3, *words, sums)
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_refusal_is_told_also_where_the_message_has_to_wait(sums):
    out, into = os.pipe()
    os.set_blocking(into, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(into, b"." * 4096)
    os.set_blocking(into, True)
    argv = [*COMMAND, "dsm", "run", "-n", "3", "--cache", "0", str(sums)]
    with subprocess.Popen(argv, stderr=into) as job:
        os.close(into)
        time.sleep(2)  # the processes that have nothing to tell would have left by now
        with os.fdopen(out, "rb") as told:
            text = told.read().decode()
    assert job.returncode == 1
    assert "cache of 0 bytes is too small" in text


def test_a_pthreads_program_runs_as_it_is_and_takes_settings_of_pages_with_window_alone(tmp_path):
    source = tmp_path / "p.c"
    source.write_text(
        "#include <pthread.h>\n#include <stdio.h>\nstatic int n;\n"
        "static void *add(void *by) { n += *(int *)by; return 0; }\n"
        "int main(void) { int by = 41; pthread_t t; n = 1; pthread_create(&t, 0, add, &by);\n"
        'pthread_join(t, 0); printf("%d\\n", n); return 3; }\n'
    )
    subprocess.run(["cc", "-pthread", source, "-o", tmp_path / "p"], check=True)
    done = run("-n", 3, tmp_path / "p")
    assert (done.stdout, done.stderr, done.returncode) == ("42\n", "", 3)
    done = run("-n", 3, "--transport", "window", "--cache", "1MiB", "--machine", "stale", tmp_path / "p")
    assert (done.stdout, done.stderr, done.returncode) == ("42\n", "", 3)
    for words in (["--machine", "stale"], ["--cache", "1MiB"], ["--stats"]):
        refused = run(*words, tmp_path / "p")
        assert refused.returncode == 2
        assert words[0] in refused.stderr and "map the same pages" in refused.stderr.replace("\n", " ")


def test_options_become_settings(monkeypatch, tmp_path):
    for name in (dsm.LAUNCHER, dsm.LIBRARY):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    env = dsm.environment(Choice("window", "regional", "stale", "1GiB", "64KiB", "json"))
    assert env["TOMBOLO_DSM_TRANSPORT"] == "window"
    assert env["TOMBOLO_DSM_PROTOCOL"] == "regional"
    assert env["TOMBOLO_MACHINE"] == "stale"
    assert env["TOMBOLO_DSM_MEMORY"] == "1GiB"
    assert env["TOMBOLO_DSM_CACHE"] == "64KiB"
    assert env["TOMBOLO_STATS"] == "json"
    assert env["LD_LIBRARY_PATH"] == f"{tmp_path}:/elsewhere"
    assert dsm.command(3, ["a", "-n"]) == [str(tmp_path / dsm.LAUNCHER), "3", "a", "-n"]
    plain = dsm.environment(Choice())
    assert {name for name in plain if name.startswith("TOMBOLO_DSM")} == set()


# --- The benchmark --------------------------------------------------------------------------------


def test_ratios_compare_within_a_round():
    pthreads, ours = Contestant("pthreads"), Contestant("map")
    kernel = Kernel("jacobi", "lock")
    measured = Measured(kernel, [{pthreads: 1.0, ours: 2.0}, {pthreads: 8.0, ours: 10.0}, {ours: 1.0}])
    assert measured.ratio(ours) == pytest.approx((0.5 + 0.8) / 2)
    assert measured.seconds(ours) == 2.0
    assert Measured(kernel, [{pthreads: 1.0, ours: None}]).ratio(ours) is None


def test_times_have_units():
    assert bench_dsm.duration(2.5) == "2.5 s"
    assert bench_dsm.duration(0.0025) == "2.5 ms"
    assert bench_dsm.duration(0.0000025) == "2.5 us"


@pytest.mark.skipif(paths.checkout() is None, reason="the kernels are in the source tree")
@pytest.mark.parametrize("kernel", dsm_bench.KERNELS, ids=lambda k: f"{k.program}-{k.variant}")
def test_each_kernel_gives_the_same_on_all_memories(kernel):
    small = {"jacobi": ("64", "10"), "triad": ("4096", "3"), "fill": ("1048576",), "cold": ("65536",)}
    kernel = Kernel(kernel.program, kernel.variant, quick=small.get(kernel.program, ("0", "100")))
    lines = [dsm_bench.run(kernel, who, 2, True) for who in dsm_bench.contestants(["coherent"])]
    checks = [line["check"] for line in lines]
    assert checks == pytest.approx([checks[0]] * 3)
    assert all(line["seconds"] > 0 for line in lines)


def test_an_unknown_row_is_refused():
    result = CliRunner().invoke(app, ["bench", "dsm", "--row", "nothing"])
    assert isinstance(result.exception, UserError)
    assert "jacobi" in str(result.exception)
