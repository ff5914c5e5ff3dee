# SPDX-License-Identifier: Apache-2.0
"""Programs on virtual shared memory, started by the command."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from dsm_pthreads_test import installed
from full_disk import expect_the_trace_of_before, full_disk
from tombolo import dsm, dsm_bench, libraries, paths
from tombolo.app import made
from tombolo.commands import bench_dsm
from tombolo.dsm import Choice
from tombolo.dsm_bench import Contestant, Kernel, Measured
from tombolo.errors import UserError
from typer.testing import CliRunner

__all__ = ["full_disk"]  # a fixture

COMMAND = [sys.executable, "-P", str(Path(dsm.__file__).parent / "__main__.py")]
TRANSPORTS = [["--transport", "map"], ["--transport", "window"]]
ON_MACHINES = [["--transport", "window", "--machine", name] for name in ("flushed", "stale")]
IN_ORDER = ["--transport", "window", "--protocol", "sequential"]

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

# A flag without a lock.
FLAG = r"""
#include <sched.h>
#include <stdio.h>
#include <tombolo/dsm.h>

int main(void) {
  tombolo_dsm_init();
  volatile int* const block = tombolo_dsm_malloc(8192);
  tombolo_dsm_barrier_wait();
  if (tombolo_dsm_thread() == 0) {
    block[0] = 7;
    block[1024] = 1;
  } else {
    while (block[1024] == 0) sched_yield();
    printf("%d\n", block[0]);
  }
  tombolo_dsm_finalize();
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
    def compile_text(name: str, text: str, *more: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        source, program = folder / f"{name}.c", folder / name
        source.write_text(text)
        options = ["-O1", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *more]
        subprocess.run(["cc", *options, source, "-o", program, *dsm.flags()], check=True)
        return program

    return compile_text


@pytest.fixture(scope="module")
def sums(compile_c):
    return compile_c("sums", SUMS)


def run(*words, cwd: Path | None = None, inside=(), **environment) -> subprocess.CompletedProcess:
    env = os.environ | environment
    argv = [*inside, *COMMAND, "dsm", "run", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, cwd=cwd)


@pytest.mark.parametrize("how", [*TRANSPORTS, *ON_MACHINES, IN_ORDER], ids=lambda words: words[-1])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_memory_locks_and_sums(sums, how, threads):
    done = run("-n", threads, *how, "--memory", "4MiB", sums, TOMBOLO_DSM_CACHE="64KiB")
    if "flushed" in how and "clflush" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    ranks = threads * (threads + 1) // 2
    assert done.stdout == f"499500 {10 * threads} {ranks} 0 {threads - 1} moved\n"
    assert done.stderr == ""


@pytest.mark.parametrize("machine", ["coherent", "stale"])
@pytest.mark.parametrize("servers", [1, 3])
def test_memory_servers_hold_the_memory_and_are_no_threads(sums, servers, machine):
    how = ["--transport", "window", "--machine", machine, "--memory", "4MiB", "--cache", "64KiB"]
    done = run("-n", 2, "--servers", servers, *how, "--stats", sums)
    assert (done.returncode, done.stdout) == (0, "499500 20 3 0 1 moved\n"), done.stderr
    told = [line.split()[2] for line in done.stderr.splitlines() if line.startswith("tombolo: stats ")]
    assert sorted(told) == ["rank=0", "rank=1"]


def test_a_program_that_is_started_by_itself_has_one_thread(sums):
    done = subprocess.run([sums], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "499500 10 1 0 0 moved\n"), done.stderr


DENY = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* deny NUMBER PROGRAM...: without that system call, as in the sandbox of a container. */
int main(int argc, char** argv) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[1]), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {sizeof code / sizeof *code, code};
  if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 99;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 99;
  execvp(argv[2], argv + 2);
  return 98;
}
"""
NUMBERS = {"userfaultfd": {"x86_64": 323, "aarch64": 282}, "memfd": {"x86_64": 319, "aarch64": 279}}


@pytest.fixture
def run_without(compile_c, sums):
    """Runs the sums with `window` where the kernel refuses a system call."""
    deny = compile_c("deny", DENY)

    def run_it(call: str, *more: str) -> subprocess.CompletedProcess:
        number = NUMBERS[call].get(platform.machine())
        words = ["-n", "2", "--transport", "window", "--memory", "4MiB", "--cache", "64KiB", *more, sums]
        argv = [deny, str(number), *COMMAND, "dsm", "run", *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        if number is None or done.returncode == 99:
            pytest.skip("this kernel filters no system calls")
        return done

    return run_it


def test_without_userfaultfd_pages_are_closed_by_mprotect(run_without):
    done = run_without("userfaultfd")
    assert (done.returncode, done.stdout) == (0, "499500 20 3 0 1 moved\n"), done.stderr


def test_without_memory_that_has_no_name_a_page_cache_is_refused(run_without):
    done = run_without("memfd", "--machine", "stale")
    assert (done.returncode, done.stdout) == (1, "")
    assert "memfd_create" in done.stderr and done.stderr.count("\n") == 1


def test_without_memory_that_has_no_name_pages_in_place_are_in_memory_that_has_one(run_without):
    done = run_without("memfd", "--machine", "coherent")
    assert (done.returncode, done.stdout) == (0, "499500 20 3 0 1 moved\n"), done.stderr


def test_flags_work_under_sequential_consistency(compile_c):
    done = run("-n", 3, *IN_ORDER, "--memory", "4MiB", "--stats", compile_c("flag", FLAG))
    assert (done.returncode, done.stdout) == (0, "7\n7\n"), done.stderr
    assert done.stderr.count("protocol=sequential") == 3


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


FALSE_SHARING = r"""
#include <tombolo/dsm.h>

int main(void) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread();
  double* const numbers = tombolo_dsm_malloc(2 * 4096);
  tombolo_dsm_mutex_t mutex = tombolo_dsm_mutex_create();
  for (int i = 0; i < 20; ++i) {
    if (me == 0) numbers[0] += 1;    // line 10
    if (me == 1) numbers[256] += 1;  // line 11
    numbers[512 + i] += 1;
    tombolo_dsm_barrier_wait();
    tombolo_dsm_mutex_lock(mutex);
    tombolo_dsm_mutex_unlock(mutex);
  }
  tombolo_dsm_finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def false_sharing(compile_c):
    return compile_c("false_sharing", FALSE_SHARING, "-g")


def test_the_hottest_pages_name_the_lines_that_share_them_falsely(false_sharing):
    words = ["-n", 2, "--transport", "window", false_sharing]
    told = run(*words, TOMBOLO_STATS="json").stderr
    counts = [json.loads(line.split(" ", 2)[2]) for line in told.splitlines()]
    (pages,) = [each["hottest_pages"] for each in counts if "hottest_pages" in each]
    first = pages[0]
    assert first["shared_falsely"] and first["threads"] == [0, 1]
    assert first["faults"] >= 40 and first["fetches"] >= 20 and first["sent"] >= 20
    assert int(first["address"], 16) % 4096 == 0
    places = " ".join(first["places"])
    assert re.search(r"false_sharing.c:10 \(thread 0: 20 stores, .*? bytes 0 to 0\)", places)
    assert re.search(r"false_sharing.c:11 \(thread 1: 20 stores, .*? bytes 2048 to 2048\)", places)
    assert not pages[1]["shared_falsely"], "both threads store to the same numbers"
    text = run("--stats", *words).stderr
    (line,) = [line for line in text.splitlines() if "shared_falsely=yes" in line]
    assert line.startswith("tombolo: page address=0x") and "threads=0,1" in line
    assert "page" not in run("--stats", "-n", 2, false_sharing).stderr, "map counts no pages"


def nested(events: list[dict]) -> bool:
    """Whether each event of a thread ends before the one around it does."""
    ends: list[float] = []
    for event in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
        while ends and ends[-1] <= event["ts"] + 0.001:
            ends.pop()
        if ends and event["ts"] + event["dur"] > ends[-1] + 0.002:
            return False
        ends.append(event["ts"] + event["dur"])
    return True


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
def test_a_trace_has_the_nested_events_of_all_threads(false_sharing, how, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("of an earlier run, and longer than nothing")
    done = run("-n", 3, *how, "--trace", path.name, false_sharing, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads(path.read_text())["traceEvents"]
    names = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert names == {1: "thread 0", 2: "thread 1", 3: "thread 2"}
    timed = [each for each in events if each["ph"] == "X"]
    assert len(timed) + 4 == len(events)
    assert min(each["ts"] for each in timed) == 0
    for thread in names:
        own = [each for each in timed if each["tid"] == thread]
        assert sum(each["name"] == "barrier" for each in own) == 20
        assert all(each["dur"] >= 0 for each in own) and nested(own)
        if how[-1] == "window":
            assert {"fetch", "read fault", "write fault", "lock wait"} <= {e["name"] for e in own}


def test_a_trace_that_cannot_be_written_is_refused_at_the_start(false_sharing):
    done = run("-n", 2, "--trace", "/nowhere/trace.json", false_sharing)
    why = "a new file in /nowhere: No such file or directory"
    assert (done.returncode, done.stderr) == (2, f"tombolo: /nowhere/trace.json cannot be written: {why}\n")
    by_itself = run("-n", 2, false_sharing, TOMBOLO_DSM_TRACE="/nowhere/trace.json")
    assert by_itself.returncode == 1
    assert "/nowhere/trace.json cannot be written: open" in by_itself.stderr
    assert by_itself.stderr.count("\n") == 1


def test_a_trace_on_a_full_disk_is_told_once(false_sharing, locked_sums, full_disk):
    for program, status in ((false_sharing, 0), (locked_sums, 3)):
        done = run("-n", 3, "--trace", full_disk / "trace.json", program)
        assert done.returncode == status, done.stderr
        assert done.stderr.count("No space left on device") == done.stderr.count("\n") == 1
        expect_the_trace_of_before(full_disk)


def test_a_part_of_a_trace_is_on_the_disk_before_the_trace_replaces_the_one_of_before(compile_c, tmp_path):
    """The disk of one process's host tells only at the fsync that it is full."""
    full = """
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
static unsigned own_thread;
int fsync(int file) {
  errno = ENOSPC;
  return own_thread == 2 ? -1 : (int)syscall(SYS_fsync, file);
}
"""
    init = "tombolo_dsm_init();"
    program = compile_c("full_host", full + FALSE_SHARING.replace(init, f"{init} own_thread = tombolo_dsm_thread();"))
    path = tmp_path / "trace.json"
    path.write_text("of before")
    done = run("-n", 3, "--trace", path, program)
    told = f"tombolo: rank 2: the trace {path} cannot be written: fsync: No space left on device; see TOMBOLO_DSM_TRACE"
    assert done.returncode == 0 and done.stderr.startswith(told) and done.stderr.count("\n") == 1
    assert path.read_text() == "of before" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--transport", "mpi", "--mpi", "best", "true"], "'best' is not an MPI"),
        (["--transport", "best", "true"], "'best' is not a value of TOMBOLO_DSM_TRANSPORT"),
        (["--protocol", "none", "true"], "'none' is not a value of TOMBOLO_DSM_PROTOCOL"),
        (["--machine", "best", "true"], "'best' is not a machine"),
        (["no-such-program"], "no folder of PATH has a program 'no-such-program'"),
        (["--memory", "some", "true"], "--memory: 'some' is not a size"),
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
        (["--transport", "window", "--cache", "0"], "cache of 0 bytes is too small"),
        (["--memory", "8TiB"], "bytes"),
        (["--memory", "0"], "see TOMBOLO_DSM_MEMORY and --memory"),
        (["--servers", "1"], "they serve transport window: give --transport window"),
    ],
)
def test_settings_that_cannot_be_are_refused_once(sums, words, told):
    done = run("-n", 3, *words, sums)
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"TOMBOLO_MACHINE": "stale"}, "transport map needs a coherent machine"),
        ({"TOMBOLO_DSM_MEMORY": "some"}, "TOMBOLO_DSM_MEMORY is 'some'"),
    ],
)
def test_settings_of_the_environment_that_cannot_be_are_refused_once(sums, environment, told):
    argv = [*COMMAND, "dsm", "run", "-n", "3", str(sums)]
    done = subprocess.run(argv, capture_output=True, text=True, env=os.environ | environment, timeout=60)
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_machine_of_cached_pages_is_refused_where_there_are_none(sums):
    done = run("-n", 3, "--machine", "stale", sums)
    assert (done.returncode, done.stdout) == (1, "")
    assert "transport map needs a coherent machine, and stale is none; with transport window" in done.stderr


def test_a_refusal_is_told_also_where_the_message_has_to_wait(sums):
    out, into = os.pipe()
    os.set_blocking(into, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(into, b"." * 4096)
    os.set_blocking(into, True)
    argv = [*COMMAND, "dsm", "run", "-n", "3", "--transport", "window", "--cache", "0", str(sums)]
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
    for words, why in (
        ("--transport window --protocol sequential", "pages away that a system call of the program is using"),
        ("--machine stale", "transport map needs a coherent machine, and stale is none; see TOMBOLO_MACHINE and"),
        ("--cache 1MiB", "TOMBOLO_DSM_CACHE is of pages that processes cache, and with transport map all map"),
        ("--protocol sequential", "TOMBOLO_DSM_PROTOCOL is of pages that processes cache"),
        ("--servers 1", "transport map has no use for memory servers: all processes map the same pages"),
    ):
        refused = run(*words.split(), tmp_path / "p")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("tombolo: the program does not start: ") and why in refused.stderr
    done = run("-n", 2, "--transport", "window", "--servers", "2", "--stats", tmp_path / "p")
    assert (done.stdout, done.returncode) == ("42\n", 3)
    told = [line.split()[2] for line in done.stderr.splitlines() if line.startswith("tombolo: stats ")]
    assert told == ["rank=0", "rank=1", "memory_server=0", "memory_server=1"]
    assert run("--servers", "0", tmp_path / "p").stdout == "42\n"
    assert run("-n", 1, tmp_path / "p").stdout == "42\n", "one thread besides the first"


@pytest.mark.parametrize(("program", "arguments"), [("pigz", "-p 4 -k -n"), ("zstd", "-T4 -q -k")])
def test_a_program_of_four_threads_may_have_more_that_help_them(program, arguments, tmp_path):
    data = tmp_path / "data"
    data.write_bytes(Path(__file__).read_bytes() * 20)
    done = run("-n", 4, "--transport", "window", installed(program), *arguments.split(), data)
    assert (done.returncode, done.stderr) == (0, "")
    (packed,) = set(tmp_path.iterdir()) - {data}
    unpacked = subprocess.run([program, "-d", "-c", packed], capture_output=True, check=True).stdout
    assert unpacked == data.read_bytes()


def test_a_script_is_refused_by_name(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    for done in (run(script), run("script", PATH=f"{tmp_path}:{os.environ['PATH']}")):
        assert (done.returncode, done.stdout) == (2, "")
        told = done.stderr.replace("\n", " ")
        assert "/script is no ELF program, but a script or the like: each process would run all of it." in told


LOCKED_SUMS = r"""
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier, alone;
static int waits, sum;

static void* add(void* held) {
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&mutex);
  ++sum;
  pthread_mutex_unlock(&mutex);
  return held;
}

int main(void) {
  pthread_t threads[2];
  if (chdir("/") != 0) return 1;
  pthread_barrier_init(&barrier, NULL, 3);
  pthread_barrier_init(&alone, NULL, 1);
  pthread_barrier_wait(&alone);  // before other processes are forked from this one
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, add, &waits);
  pthread_mutex_lock(&mutex);
  pthread_barrier_wait(&barrier);
  ++sum;
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return sum;
}
"""


@pytest.fixture(scope="module")
def locked_sums(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked_sums")
    source, program = folder / "locked_sums.c", folder / "locked_sums"
    source.write_text(LOCKED_SUMS)
    subprocess.run(["cc", "-pthread", source, "-o", program], check=True)
    return program


def test_stats_of_a_pthreads_program_on_one_memory_are_its_waits(locked_sums):
    done = run("--stats", locked_sums)
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    assert len(lines) == 3 and all(line.startswith("tombolo: stats rank=") for line in lines)
    assert all("machine=coherent transport=map" in line for line in lines)
    assert [line.count("dsm_barriers=1 ") for line in lines] == [0, 1, 1]
    assert "dsm_fetches" not in done.stderr, "no page is counted"
    told = run(locked_sums, TOMBOLO_STATS="json").stderr.splitlines()
    counts = [json.loads(line.split(" ", 2)[2]) for line in told]
    assert [each["rank"] for each in counts] == ["0", "1", "2"]
    assert [each["dsm_barriers"] for each in counts] == [2, 1, 1]
    assert "hottest_pages" not in counts[0]
    assert all({"dsm_lock_waits", "dsm_lock_wait_us", "dsm_barrier_us"} <= each.keys() for each in counts)


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
def test_a_pthreads_program_writes_a_trace_of_all_its_processes(locked_sums, how, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("of an earlier run, and longer than nothing")
    done = run(*how, "--trace", path.name, locked_sums, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    events = json.loads(path.read_text())["traceEvents"]
    names = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert names == {1: "process 0", 2: "process 1", 3: "process 2"}
    timed = [each for each in events if each["ph"] == "X"]
    assert min(each["ts"] for each in timed) == 0
    for process in names:
        own = [each for each in timed if each["tid"] == process]
        assert sum(each["name"] == "barrier" for each in own) == (2 if process == 1 else 1)
        assert all(each["dur"] >= 0 for each in own) and nested(own)
        if how[-1] == "window":
            assert {"fetch", "write fault", "lock wait"} <= {each["name"] for each in own}
    refused = run(*how, locked_sums, TOMBOLO_DSM_TRACE="/nowhere/trace.json")
    assert refused.returncode == 1 and "/nowhere/trace.json cannot be written: open" in refused.stderr


def test_programs_are_named_as_in_a_shell(sums, tmp_path):
    name = tmp_path / "name"
    source = tmp_path / "name.c"
    source.write_text("#include <stdio.h>\nint main(int n, char** v) { (void)n; puts(v[0]); return 0; }\n")
    subprocess.run(["cc", source, "-o", name], check=True)
    (tmp_path / "sums").symlink_to(sums)
    (tmp_path / "below").mkdir()
    for word, place in (("./name", tmp_path), ("../name", tmp_path / "below"), ("below/../name", tmp_path)):
        done = run(word, cwd=place)
        assert (done.stdout, done.stderr, done.returncode) == (f"{word}\n", "", 0)
    found = run("name", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (found.stdout, found.returncode) == ("name\n", 0)
    assert run("-n", 2, "--memory", "4MiB", "./sums", cwd=tmp_path).stdout.endswith("moved\n")


def test_options_become_settings(monkeypatch, tmp_path):
    for name in (dsm.LAUNCHER, dsm.LIBRARY):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    env = dsm.environment(
        Choice(
            transport="window", protocol="regional", machine="stale", memory="1GiB", cache="64KiB", stats="json",
            trace="/tmp/trace", servers=2,
        )
    )  # fmt: skip
    assert env["TOMBOLO_DSM_TRANSPORT"] == "window"
    assert env["TOMBOLO_DSM_PROTOCOL"] == "regional"
    assert env["TOMBOLO_MACHINE"] == "stale"
    assert env["TOMBOLO_DSM_MEMORY"] == "1GiB"
    assert env["TOMBOLO_DSM_CACHE"] == "64KiB"
    assert env["TOMBOLO_STATS"] == "json"
    assert env["TOMBOLO_DSM_TRACE"] == "/tmp/trace"
    assert env["TOMBOLO_DSM_SERVERS"] == "2"
    assert env["LD_LIBRARY_PATH"] == f"{tmp_path}:/elsewhere"
    assert dsm.command(3, ["a", "-n"]) == [str(tmp_path / dsm.LAUNCHER), "3", "a", "-n"]
    plain = dsm.environment(Choice())
    assert {name for name in plain if name.startswith("TOMBOLO_DSM")} == set()


@pytest.mark.parametrize(("text", "servers"), [("", 0), ("3", 3), ("-1", 0), ("some", 0), ("5000", 0)])
def test_memory_servers_that_the_environment_asks_for_are_started_by_a_launcher(text, servers, monkeypatch):
    monkeypatch.setenv("TOMBOLO_DSM_SERVERS", text)
    assert dsm.memory_servers(None) == servers
    assert [dsm.memory_servers(asked) for asked in (0, 2)] == [0, 2]


# --- The benchmark --------------------------------------------------------------------------------


def test_ratios_compare_within_a_round():
    pthreads, ours = Contestant("pthreads"), Contestant("map")
    kernel = Kernel("jacobi", "lock")
    measured = Measured(kernel, [{pthreads: 1.0, ours: 2.0}, {pthreads: 8.0, ours: 10.0}, {ours: 1.0}])
    assert measured.ratio(ours).median == pytest.approx((0.5 + 0.8) / 2)
    assert measured.ratio(ours).low == 0.5 and measured.ratio(ours).high == pytest.approx(0.8)
    assert measured.seconds(ours) == (2.0, 1.0, 10.0)
    assert Measured(kernel, [{pthreads: 1.0, ours: None}]).ratio(ours) is None


def test_times_have_units():
    assert bench_dsm.duration(2.5) == "2.5 s"
    assert bench_dsm.duration(0.0025) == "2.5 ms"
    assert bench_dsm.duration(0.0000025) == "2.5 us"


@pytest.mark.skipif(paths.checkout() is None, reason="the kernels are in the source tree")
@pytest.mark.parametrize("kernel", bench_dsm.chosen("", False), ids=lambda k: f"{k.program}-{k.variant}")
def test_each_kernel_gives_the_same_on_all_memories(kernel):
    small = {
        "fill": ("1048576",), "cold": ("65536",), "lu": ("256",), "md": ("64", "3"),
        "jacobi": ("64", "10"), "hand_over": ("0", "100"), "barrier": ("0", "100"),
    }  # fmt: skip
    kernel = replace(kernel, quick=small.get(kernel.program, ("4096", "3")), quick_cache="1MiB")
    entries = dsm_bench.entries_of(kernel, dsm_bench.contestants(["coherent"]))
    lines = [dsm_bench.run(kernel, contestant, 2, True) for contestant in entries]
    checks = [line["check"] for line in lines]
    assert checks == pytest.approx([checks[0]] * len(entries))
    assert all(line["seconds"] > 0 for line in lines)
    assert [line["seconds_there"] > 0 for line in lines].count(True) == (kernel.program in ("cold", "fill"))


@pytest.mark.skipif(paths.checkout() is None, reason="the kernels are in the source tree")
@pytest.mark.parametrize(
    ("program", "variant", "size"),
    [
        ("jacobi", "lock", ("64", "10")), ("hand_over", "64 bytes", ("0", "100")), ("cold", "read", ("65536",)),
        ("threads", "create and join", ("0", "20")),
    ],
)  # fmt: skip
def test_kernels_give_the_same_as_programs_of_pthreads(program, variant, size):
    kernel = Kernel(program, variant, quick=size, cache="4MiB")
    entries = dsm_bench.programs(["coherent"])
    assert [each.label for each in entries] == [
        "pthreads", "pthreads, clang",
        *(f"{made}, {by}" for by in ("map", "window") for made in ("unchanged", "static", "full", "page")),
    ]  # fmt: skip
    threads = 1 if program == "threads" else 2
    lines = [dsm_bench.run(kernel, contestant, threads, True) for contestant in entries]
    assert len({line["check"] for line in lines}) == 1
    assert all(line["seconds"] > 0 and line["threads"] == threads for line in lines)
    assert all(line["seconds_there"] == 0 for line in lines[2:]), "they do not copy"


@pytest.mark.skipif(paths.checkout() is None, reason="the kernels are in the source tree")
def test_lu_solves_its_equations():
    for size in ("256", "512"):
        kernel = Kernel("lu", "4 x cache", threads=1, quick=(size,))
        solved = dsm_bench.run(kernel, Contestant(dsm_bench.PTHREADS), 2, True)
        assert solved["check"] == pytest.approx(float(size), rel=1e-9), "the solution is ones"
        assert solved["threads"] == 1
    with pytest.raises(UserError, match="a multiple of 256"):
        bad = Kernel("lu", "4 x cache", quick=("300",))
        dsm_bench.run(bad, Contestant(dsm_bench.PTHREADS), 1, True)


def test_rows_of_pthreads_are_for_programs_alone():
    for_all, for_programs = bench_dsm.chosen("", False), bench_dsm.chosen("", True)
    own = [kernel for kernel in for_programs if kernel not in for_all]
    assert [(kernel.program, kernel.threads) for kernel in own] == [("threads", 1)]
    assert bench_dsm.chosen("threads", True) == own
    with pytest.raises(UserError, match="with --programs"):
        bench_dsm.chosen("threads", False)
    with pytest.raises(UserError, match="no program is called threadz;"):
        bench_dsm.chosen("threadz", True)
    for transport in ("map", "window"):
        assert dsm_bench.goal_of(own[0], Contestant(transport)) is None


def measured_row(seconds: dict[Contestant, float], **fields) -> Measured:
    return Measured(Kernel("a", "b", **fields), [seconds])


def test_goals_are_met_or_not():
    pthreads, mapped, window = Contestant("pthreads"), Contestant("map"), Contestant("window")
    row = measured_row({pthreads: 0.9, mapped: 1.0, window: 1.0}, goal=0.9)
    assert (row.met(pthreads), row.met(mapped), row.met(window)) == (None, False, True)
    row = measured_row({pthreads: 1.0, mapped: 1.0, window: 1.01}, goal=1)
    assert (row.met(mapped), row.met(window)) == (True, False)
    row = measured_row({pthreads: 1.0, window: 3e-6}, goal_us=3)
    assert (row.met(mapped), row.met(window)) == (None, True)
    assert not measured_row({pthreads: 1.0, window: 3.1e-6}, goal_us=3).met(window)
    assert measured_row({pthreads: 1.0, window: 1.0}).met(window) is None


def test_a_row_beyond_the_cache_is_compared_with_itself_in_the_cache():
    pthreads, window = Contestant("pthreads"), Contestant("window")
    whole = Contestant("window", whole=True)
    row = measured_row({pthreads: 1.0, whole: 2.0, window: 4.0}, goal=0.5, whole_cache="1MiB")
    assert row.ratio(window).median == row.ratio(whole).median == 0.5
    assert row.met(window) and row.met(whole) is None
    entries = dsm_bench.entries_of(row.kernel, [pthreads, window])
    assert entries == [pthreads, whole, window]
    assert dsm_bench.entries_of(Kernel("a", "b"), [pthreads, window]) == [pthreads, window]
    lines = bench_dsm.results(row, [pthreads, window], 2)
    assert [line["ratio_to"] for line in lines] == ["pthreads", "pthreads", "window, all cached"]
    assert [line["met"] for line in lines] == [None, None, True]


def test_goals_stand_beside_the_figures_and_quotations_name_their_sources(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    entries = [Contestant("pthreads"), Contestant("map"), Contestant("window")]
    monkeypatch.setattr(dsm_bench, "contestants", lambda machines: entries)
    times = {"pthreads": 1.0, "map": 1.0, "window": 2.0}
    monkeypatch.setattr(dsm_bench, "run", lambda kernel, contestant, *_: {"seconds": times[contestant.transport]})
    out = tmp_path / "lines"
    words = ["bench", "dsm", "--rows", "jacobi|barrier", "--json", str(out)]
    text = CliRunner().invoke(made(), words).stdout
    assert "goal 0.9: not met" in text and "goal 0.98: met" in text and "goal 3 us: not met" in text
    assert "0.80 (003 section 6.2.6)" in text and "ArgoDSM (May 2026" in text and "26 us" in text
    assert "9/9 round 3: barrier, nothing written" in text
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["ratio"] for line in lines] == [1, 1, 0.5] * 3
    assert [line["goal"] for line in lines[:3]] == [None, "0.98", "0.9"]
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".jsonl", ".png", ".svg"}


def test_rows_that_move_memory_have_both_baselines():
    pthreads, window, there = Contestant("pthreads"), Contestant("window"), dsm_bench.COPY_THERE
    row = measured_row({pthreads: 1.0, window: 2.0, there: 0.2}, goal=0.6)
    (told,) = bench_dsm.beside_copies(row, [pthreads, window])
    assert "takes 200 ms; beside that one: pthreads 0.20, window 0.10" in told
    ours = bench_dsm.results(row, [pthreads, window], 2)[1]
    assert (ours["ratio"], ours["ratio_to_copy_there"]) == (0.5, pytest.approx(0.1))
    assert bench_dsm.beside_copies(measured_row({pthreads: 1.0, window: 2.0}), [pthreads, window]) == []


def test_lines_on_stdout_stand_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    monkeypatch.setattr(dsm_bench, "contestants", lambda machines: [Contestant("pthreads")])
    monkeypatch.setattr(dsm_bench, "run", lambda *_: {"seconds": 1.0})
    told = CliRunner().invoke(made(), ["bench", "dsm", "--rows", "lu", "--json", "-"]).stdout
    assert [json.loads(line)["program"] for line in told.splitlines()] == ["lu"]


def test_programs_of_pthreads_have_a_table_for_each_transport(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    ours = [Contestant(transport, made=way) for transport in ("map", "window") for way in ("unchanged", "full")]
    entries = [Contestant("pthreads"), Contestant("pthreads", made="clang"), *ours]
    monkeypatch.setattr(dsm_bench, "programs", lambda machines: entries)
    monkeypatch.setattr(dsm_bench, "run", lambda *_: {"seconds": 1.0})
    out = tmp_path / "lines"
    words = ["bench", "dsm", "--programs", "--rows", "jacobi", "--json", str(out)]
    text = CliRunner().invoke(made(), words).stdout
    assert text.count("2 threads: median time") == 2
    assert text.count("goal 0.98: met") == text.count("goal 0.9: met") + text.count("goal 0.85: met") == 4
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    by = [None, "clang", "unchanged", "full", "unchanged", "full"]
    assert [line["program_of_pthreads"] for line in lines] == by * 2
    assert [line["ratio_to"] for line in lines[2:4]] == ["pthreads", "pthreads, clang"]
    whole = replace(ours[2], whole=True)
    row = measured_row({ours[2]: 4.0, whole: 2.0}, whole_cache="1MiB")
    assert row.base(ours[2]) == whole and row.ratio(ours[2]).median == 0.5


def test_the_spread_of_the_host_is_a_column_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    monkeypatch.setattr(dsm_bench, "contestants", lambda machines: [Contestant("pthreads"), Contestant("map")])
    times = {"": 1.0, "again": 0.8}
    monkeypatch.setattr(dsm_bench, "run", lambda kernel, each, *_: {"seconds": times[each.made]})
    out = tmp_path / "lines"
    words = ["bench", "dsm", "--quick", "--again", "--rows", "copy", "--json", str(out)]
    text = CliRunner().invoke(made(), words).stdout
    assert "pthreads, again" in text and "1.250" in text
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["program_of_pthreads"], line["ratio"]) for line in lines] == [(None, 1), (None, 1), ("again", 1.25)]
    assert [line["goal"] for line in lines] == [None, "0.98", None]
    assert text.count("2 threads: median time") == 1


@pytest.mark.skipif(paths.checkout() is None, reason="the kernels are in the source tree")
def test_pthreads_again_is_the_same_program():
    kernel, again = Kernel("copy", "warm", quick=("4096", "3")), Contestant("pthreads", made=dsm_bench.AGAIN)
    lines = [dsm_bench.run(kernel, each, 2, True) for each in (Contestant("pthreads"), again)]
    assert lines[0]["check"] == lines[1]["check"]


def test_an_unknown_row_is_refused():
    result = CliRunner().invoke(made(), ["bench", "dsm", "--rows", "nothing"])
    assert isinstance(result.exception, UserError)
    assert "jacobi" in str(result.exception)
