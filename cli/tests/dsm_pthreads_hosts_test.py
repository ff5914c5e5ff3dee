# SPDX-License-Identifier: Apache-2.0
"""Unchanged threaded programs with transport mpi: their threads run in processes that the launcher of an MPI
has started, on this host, and on two hosts (dsm_hosts_test.py). `make hosts-test` runs those that are marked
`long` as well."""

import os
import re
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from dsm_ends_test import memory_servers_of
from dsm_hosts_test import CUT, GONE, LIMIT, LOST, OFF, environment, hosts, small_memory, wait_until_ended
from dsm_pthreads_test import CHECKS, TOO_MANY, all_ended, compiled, installed, ours, processes_of, run
from tombolo import dsm_pthreads, libraries, mpis
from tombolo.errors import UserError

__all__ = ["hosts", "small_memory"]  # fixtures

SIZES = {"TOMBOLO_DSM_MEMORY": "48MiB", "TOMBOLO_DSM_CACHE": "4MiB"}


long = pytest.mark.skipif(not os.environ.get("TOMBOLO_HOSTS_TEST"), reason="make hosts-test")


def of_long_runs(*values):
    return pytest.param(*values, marks=long)


@pytest.fixture(scope="module", autouse=True)
def mpich():
    if mpis.find("mpich") is None:
        pytest.skip("mpich is not installed here")


def launched(command: list, processes: int = 4, mpi: str = "mpich", **more) -> subprocess.CompletedProcess:
    job = dsm_pthreads.mpi_job([str(part) for part in command], processes, "48MiB", "4MiB", mpi=mpi, **more)
    return subprocess.run(job.argv, capture_output=True, text=True, timeout=LIMIT, env=job.env)


def compiled_text(folder: Path, name: str, text: str) -> Path:
    source, program = folder / name, folder / Path(name).stem
    source.write_text(text)
    compiler = ["cc", "-D_GNU_SOURCE"] if source.suffix == ".c" else ["c++", "-std=c++17"]
    subprocess.run([*compiler, "-O1", "-pthread", source, "-o", program], check=True)
    return program


def same(command: list, processes: int = 4) -> None:
    expected = run(command)
    outcome = launched(command, processes)
    assert outcome.stderr == expected.stderr
    assert outcome.stdout == expected.stdout
    assert outcome.returncode == expected.returncode


# --- One host -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "threads", "rounds", "processes"),
    [
        ("threads_check", 3, 5, 4),
        of_long_runs("mutexes_check", 3, 10, 4),
        ("conditions_check", 2, 5, 5),
        ("others_check", 3, 5, 4),
        of_long_runs("c11_check", 3, 5, 4),
        ("robust_check", 2, 5, 4),
    ],
)
def test_calls_answer_as_under_pthreads(name, threads, rounds, processes):
    same([compiled(name), threads, rounds], processes)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_memory_servers_run_no_thread(mpi):
    if mpis.find(mpi) is None:
        pytest.skip(f"{mpi} is not installed here")
    outcome = launched([compiled("own_pages_check"), 2, 2, 50], 3, mpi, servers=2, stats="text")
    assert (outcome.returncode, outcome.stdout) == (0, "0 wrong\n"), outcome.stderr
    assert sorted(re.findall(r"stats rank=(\d)", outcome.stderr)) == ["0", "1", "2"]
    outcome = launched([compiled("ends_check"), "_exit"], 4, mpi, servers=1)
    assert outcome.returncode == 8


# So much of it that the change does not travel with the end of the thread: main's pages are old.
CHANGED_ENVIRONMENT = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
extern char** environ;
static void* turn_round(void* array) {
  char **low = array, **high = array;
  while (*high != NULL) ++high;
  while (low < --high) {
    char* const first = *low;
    *low++ = *high;
    *high = first;
  }
  return NULL;
}
int main(void) {
  pthread_t thread;
  char name[16];
  for (int i = 0; i < 500; ++i) {
    snprintf(name, sizeof name, "MADE_%d", i);
    setenv(name, "here", 1);
  }
  pthread_create(&thread, NULL, turn_round, environ);
  pthread_join(thread, NULL);
  return 3;
}
"""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_the_mpi_ends_behind_an_environment_that_another_thread_has_changed(mpi, tmp_path):
    if mpis.find(mpi) is None:
        pytest.skip(f"{mpi} is not installed here")
    outcome = launched([compiled_text(tmp_path, "changed.c", CHANGED_ENVIRONMENT)], 2, mpi)
    assert outcome.returncode == 3, outcome.stderr
    assert "tombolo: " not in outcome.stderr


def set_in_the_first(name: str, value: str, program: list, processes: int) -> subprocess.CompletedProcess:
    """Of all processes the first alone has the variable."""
    command = [str(part) for part in program]
    job = dsm_pthreads.mpi_job(command, processes, "48MiB", "4MiB", "json", "mpich")
    at = job.argv.index("-n")
    launcher, given = job.argv[:at], job.argv[at + 2 : -len(command)]
    first = ["-n", "1", "-env", name, value, *command]
    argv = [*launcher, *given, *first, ":", "-n", str(processes - 1), *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, env=job.env)


def test_the_first_process_says_how_many_memory_servers_there_are():
    outcome = set_in_the_first("TOMBOLO_DSM_SERVERS", "2", [compiled("own_pages_check"), 2, 2, 10], 5)
    assert (outcome.returncode, outcome.stdout) == (0, "0 wrong\n"), outcome.stderr
    assert len(re.findall(r'"rank":"\d"', outcome.stderr)) == 3


def test_the_first_process_says_which_tunings_are_switched_off():
    """Small changes, which protocol release alone has: without them the threads fetch the pages."""

    def fetches(switched_off: str) -> int:
        outcome = set_in_the_first("TOMBOLO_DSM_WITHOUT", switched_off, [compiled("spans_check"), 2, 100], 3)
        assert outcome.returncode == 0, outcome.stderr
        told = [int(count) for count in re.findall(r'"dsm_fetches":(\d+)', outcome.stderr)]
        assert len(told) == 3, outcome.stderr
        return sum(told)

    assert fetches("small-changes") > fetches("sorted-notices") + 100


def test_a_killed_memory_server_ends_the_program():
    program = compiled("ends_check")
    job = dsm_pthreads.mpi_job([str(program), "wait"], 3, "48MiB", "4MiB", mpi="mpich", servers=2)
    assert job.argv[job.argv.index("-n") + 1] == "5", "memory servers besides"
    started = subprocess.Popen(job.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=job.env)
    try:
        assert started.stdout.readline() == "before\n"
        servers = memory_servers_of(started.pid)
        assert len(servers) == 2
        os.kill(servers[1], signal.SIGKILL)
        started.communicate(timeout=20)
    finally:
        started.kill()
    assert started.returncode != 0
    assert all_ended(program)


def test_threads_are_cancelled_in_calls_that_wait_in_the_first_process():
    outcome = launched([compiled("cancellation_check"), 2, 3])
    assert (outcome.returncode, outcome.stderr) == (0, "")
    *calls, _, _, _ = lines = outcome.stdout.splitlines()
    assert len(calls) == 37 and all(line.endswith("0, cancelled 1, cleaned 1") for line in calls), lines
    assert lines[-3:] == ["forbidden: read 1 y, slept 1", "then cancelled 1", "interrupted: -1, EINTR 1"]


@pytest.mark.parametrize(
    "part",
    [
        "turns",
        "signals",
        "ordinary signals",
        "calls in handlers",
        of_long_runs("pids"),
        of_long_runs("main leaves"),
        "exit",
    ],
)
def test_a_program_is_one_process(part):
    same([compiled("ends_check"), part], 5)


def test_lines_of_eight_threads_are_whole():
    program = compiled("ends_check")
    lines = launched([program, "lines"], 9).stdout.splitlines()
    assert sorted(lines) == sorted(run([program, "lines"]).stdout.splitlines())


def test_files_streams_and_the_working_directory_are_the_programs(tmp_path):
    same([compiled("ends_check"), "files", tmp_path / "file"])
    same([compiled("ends_check"), "streams", tmp_path / "file"], 9)
    outcome = run([compiled("ends_check"), "count", tmp_path / "file"])
    assert "2401 lines, 2400 of them whole" in outcome.stdout


def test_threads_beyond_the_processes_are_refused_as_pthreads_does():
    outcome = launched([compiled("ends_check"), "too many"], 3)
    assert "2 threads, then Resource temporarily unavailable" in outcome.stdout, outcome.stderr
    assert outcome.returncode == 0
    assert outcome.stderr == TOO_MANY.format(3)


# Each wait of each process then lasts for time slices of theirs.
@long
def test_many_runs_go_well_beside_programs_that_want_the_processors():
    command = [str(compiled("others_check")), "3", "5"]
    expected = run(command).stdout
    times = []
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(6)]
    try:
        for _ in range(200):
            begin = time.monotonic()
            outcome = launched(command)
            assert (outcome.returncode, outcome.stderr, outcome.stdout) == (0, "", expected)
            times.append(time.monotonic() - begin)
    finally:
        for other in others:
            other.kill()
    print(f"200 runs: {statistics.median(times):.2f} s in the median, {max(times):.2f} s at most")


STARTS = r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static void* start(void* unused) {
  (void)unused;
  const int status = system("exit 3");
  printf("system %d, errno %d\n", status, errno == ENOTSUP);
  printf("popen %d\n", popen("true", "r") != NULL);
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, start, NULL);
  pthread_join(thread, NULL);
  printf("the first thread: %d\n", WEXITSTATUS(system("exit 3")));
}
"""


def test_other_programs_are_started_by_the_first_thread_alone(tmp_path):
    outcome = launched([compiled_text(tmp_path, "starts.c", STARTS)], 2)
    assert outcome.stdout == "system -1, errno 1\npopen 0\nthe first thread: 3\n"
    told = outcome.stderr.splitlines()
    assert len(told) == 2 and all("descriptors; the first thread can start it" in line for line in told)


@pytest.mark.parametrize(
    ("part", "status", "told"),
    [
        of_long_runs("exit", 7, None),
        ("_exit", 8, None),
        of_long_runs("never joined", 5, None),
        ("busy", 7, None),
        of_long_runs("abort", None, "BAD TERMINATION"),
        ("segv", None, "signal 11"),
        of_long_runs("overflow", None, "signal 11"),
        of_long_runs("killed", None, "signal 9"),
        ("main killed", None, "signal 9"),
    ],
)
def test_the_end_of_one_thread_is_that_of_the_program(part, status, told):
    program = compiled("ends_check")
    outcome = launched([program, part])
    text = outcome.stdout + outcome.stderr
    if told is None:
        assert (outcome.returncode, outcome.stderr) == (status, "")
    else:
        assert outcome.returncode != 0 and told in text, "by the launcher"
    assert all_ended(program)


def test_a_program_of_cxx_has_its_streams(tmp_path):
    outcome = launched([compiled_text(tmp_path, "streams.cpp", STREAMS)], 3, stats="text")
    assert outcome.stdout == "thread 0 of Ort, 7\nthread 1 of Ort, 7\nmain, 7\n", outcome.stderr
    assert len(re.findall(r"tombolo: stats .*rank=\d .*dsm_fetches=", outcome.stderr)) == 3


# A variable with a constructor, the environment, and a virtual method.
STREAMS = r"""
#include <pthread.h>
#include <stdlib.h>

#include <iostream>
#include <string>

struct Base {
  virtual ~Base() = default;
  virtual int number() const { return 1; }
};
struct Derived : Base {
  int number() const override { return 7; }
};
static std::string name = "Ort";
static const Base* object;

static void* work(void* self) {
  std::cout << "thread " << reinterpret_cast<long>(self) << " of " << name << ", " << object->number() << getenv("SET")
            << std::endl;
  return nullptr;
}

int main() {
  object = new Derived();
  setenv("SET", "", 1);
  for (long i = 0; i < 2; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, work, reinterpret_cast<void*>(i));
    pthread_join(thread, nullptr);
  }
  std::cout << "main, " << object->number() << std::endl;
}
"""


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("TOMBOLO_DSM_PROTOCOL", "sequential", "protocol sequential is not there for programs of Pthreads"),
        ("TOMBOLO_DSM_SERVERS", "3", "3 memory servers of 3 processes leave none for a thread"),
        ("TOMBOLO_DSM_TRACE", "/tmp/trace", "a trace of a program of Pthreads with transport mpi"),
        ("TOMBOLO_DSM_CACHE", "64KiB", "is too small for a program of Pthreads"),
        ("TOMBOLO_DSM_MEMORY", "much", "TOMBOLO_DSM_MEMORY"),
        ("TOMBOLO_DSM_HEAP", "48MiB", "TOMBOLO_DSM_HEAP is called TOMBOLO_DSM_MEMORY"),
    ],
)
def test_what_is_not_there_is_told_once_at_the_start(setting, value, told):
    job = dsm_pthreads.mpi_job([str(compiled("ends_check")), "turns"], 3, mpi="mpich")
    done = subprocess.run(job.argv, capture_output=True, text=True, timeout=LIMIT, env=job.env | {setting: value})
    assert done.returncode != 0
    assert "before" not in done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("tombolo: ")]
    assert len(lines) == 1 and told in lines[0], done.stderr
    assert lines[0].startswith("tombolo: the program does not start: ")


def test_a_host_without_room_in_its_shared_memory_is_named(small_memory):
    job = dsm_pthreads.mpi_job([str(compiled("ends_check")), "turns"], 3, "48MiB", "4MiB", mpi="mpich")
    done = subprocess.run([*small_memory, *job.argv], capture_output=True, text=True, timeout=LIMIT, env=job.env)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert re.search(
        r"does not start: the 3 processes on host .* need \d+ bytes of /dev/shm, which has \d+ left", lines[0]
    )
    assert done.stdout == "", "MPICH has left nothing there"


# Whether its first process has the library of several hosts.
LOADED = """
#include <stdio.h>
#include <string.h>
int main(void) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, "libtombolo_pthread_hosts.so") != NULL) return puts("loaded") < 0;
  return puts("not loaded") < 0;
}
"""


def test_the_library_of_several_hosts_is_loaded_with_transport_mpi_alone(tmp_path):
    program = compiled_text(tmp_path, "loaded.c", LOADED)
    for transport in ("map", "window"):
        assert ours([program], transport=transport).stdout == "not loaded\n"
    assert launched([program], 2).stdout == "loaded\n"


def test_the_library_of_several_hosts_shows_one_function_alone():
    library = libraries.need_program(dsm_pthreads.HOSTS)
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in shown.stdout.splitlines()] == ["tombolo_pthread_make_launched_team"]


def test_a_missing_library_of_several_hosts_is_named(tmp_path, monkeypatch):
    job = dsm_pthreads.mpi_job([str(compiled("ends_check")), "turns"], 2, mpi="mpich")
    for name in (dsm_pthreads.LIBRARY, "libtombolo_dsm_mpich.so"):
        (tmp_path / name).symlink_to(libraries.need_program(name))
    argv = [word.replace(str(dsm_pthreads.library()), str(tmp_path / dsm_pthreads.LIBRARY)) for word in job.argv]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, env=job.env)
    assert (done.returncode != 0, done.stdout) == (True, "")
    lines = [line for line in done.stderr.splitlines() if line.startswith("tombolo: ")]
    assert len(lines) == 1, done.stderr
    assert f"transport mpi cannot load its module: {tmp_path / dsm_pthreads.HOSTS}: " in lines[0]
    # The command knows it before it starts a process.
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    with pytest.raises(UserError, match=f"{dsm_pthreads.HOSTS} is not in"):
        dsm_pthreads.mpi_job(["program"], 2, mpi="mpich")


# --- Two hosts ------------------------------------------------------------------------------------


@pytest.fixture
def on_two(hosts):
    """As `hosts`, for programs that the library is preloaded into."""
    given = ["-genv", "LD_PRELOAD", str(dsm_pthreads.library())]

    def command(program, *arguments, around=()):
        return hosts(*given, program, *arguments, around=around)

    return command


def on_two_hosts(words: list, **more) -> subprocess.CompletedProcess:
    env = environment(LD_BIND_NOW="1", **SIZES, **more)
    return subprocess.run(words, capture_output=True, text=True, env=env, timeout=LIMIT)


@pytest.mark.parametrize(("name", "arguments"), [of_long_runs("threads_check", [3, 5]), ("conditions_check", [1, 5])])
def test_two_hosts_run_the_threads_of_one_program(name, arguments, on_two):
    program = compiled(name)
    expected = run([program, *arguments])
    outcome = on_two_hosts(on_two(program, *arguments))
    assert (outcome.returncode, outcome.stdout) == (0, expected.stdout), outcome.stderr


def test_a_host_of_memory_servers_lends_its_memory(on_two):
    count = ["sh", "-c", '"$@" || exit; ip -s link show veth0 | grep -A1 TX >&2', "sh"]
    command = on_two(compiled("own_pages_check"), 1, 2, 100, around=count)
    outcome = on_two_hosts(command, TOMBOLO_DSM_SERVERS="2")
    assert (outcome.returncode, outcome.stdout) == (0, "0 wrong\n"), outcome.stderr
    sent = int(re.search(r"TX:.*\n\s*(\d+)", outcome.stderr)[1])
    assert sent > 1_200_000, "all pages go to the other host; without memory servers half of them would stay here"


def test_a_program_that_others_have_built_packs_a_file_on_two_hosts(on_two, tmp_path):
    pigz = installed("pigz")
    data = tmp_path / "data"
    data.write_bytes(b"".join(path.read_bytes() for path in sorted(CHECKS.glob("*.c")))[:200_000] * 2)
    command = [pigz, "-c", "-p", "2", data]
    expected = subprocess.run(command, capture_output=True, timeout=LIMIT, check=True)
    env = environment(LD_BIND_NOW="1", **SIZES)
    outcome = subprocess.run(on_two(*command), capture_output=True, env=env, timeout=LIMIT)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert outcome.stdout == expected.stdout


# Each thread says where it runs; the files are in a folder that the two hosts do not share.
PLACES = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char names[3][64], folder[] = "/dev/shm/programXXXXXX";
static int shared;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;
static long turn;

static void* work(void* number) {
  const long i = (long)number;
  char path[100], line[100];
  gethostname(names[i], sizeof names[i] - 1);
  snprintf(path, sizeof path, "%s/%ld", folder, i);
  FILE* file = fopen(path, "w");
  if (file == NULL) return NULL;
  fprintf(file, "of thread %ld\n", i);
  fclose(file);
  const int length = snprintf(line, sizeof line, "%ld in turn\n", i);
  pthread_mutex_lock(&mutex);
  while (turn != i) pthread_cond_wait(&next, &mutex);
  if (write(shared, line, (size_t)length) != length) exit(3);
  printf("%ld prints\n", i);
  ++turn;
  pthread_cond_broadcast(&next);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  char line[100], path[100];
  pthread_t threads[3];
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 1;
  shared = open("shared", O_RDWR | O_CREAT, 0600);
  // None ends before all are there: the third is not where the first one was.
  pthread_mutex_lock(&mutex);
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  pthread_mutex_unlock(&mutex);
  for (long i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
    snprintf(path, sizeof path, "%ld", i);
    FILE* file = fopen(path, "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL) return 2;
    printf("%s: %s", names[i], line);
    fclose(file);
    unlink(path);
  }
  const ssize_t bytes = pread(shared, line, sizeof line, 0);
  printf("%.*s", (int)bytes, line);
  unlink("shared");
  return rmdir(folder) != 0;
}
"""


def test_files_of_two_hosts_are_the_first_ones(on_two, tmp_path):
    outcome = on_two_hosts(on_two(compiled_text(tmp_path, "places.c", PLACES)))
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert [line for line in lines if "prints" in line] == ["0 prints", "1 prints", "2 prints"]
    assert [line for line in lines if "prints" not in line] == [
        "host-a: of thread 0", "host-b: of thread 1", "host-b: of thread 2", "0 in turn", "1 in turn", "2 in turn",
    ]  # fmt: skip


# As in a debugger, or where other programs have the processors.
@long
def test_processes_that_do_not_run_are_not_lost(on_two):
    program = compiled("ends_check")
    job = subprocess.Popen(
        on_two(program, "wait"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(LD_BIND_NOW="1", **SIZES), start_new_session=True,
    )  # fmt: skip
    try:
        assert job.stdout.readline() == "before\n"
        stopped = sorted(processes_of(program))[1:]
        assert len(stopped) == 3
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        time.sleep(6)
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        time.sleep(1)
        assert len(processes_of(program)) == 4
    finally:
        os.killpg(job.pid, signal.SIGTERM)
        job.communicate(timeout=LIMIT)
    wait_until_ended(program)


@pytest.mark.parametrize("gone", [CUT, OFF], ids=["cut off", "switched off"])
def test_a_host_that_goes_away_ends_the_program_with_a_message(on_two, gone, tmp_path):
    program = compiled("ends_check")
    trigger = tmp_path / "go"
    around = ["sh", "-c", f'"$@" & until [ -e {trigger} ]; do sleep 0.05; done; {gone}; wait $!', "sh"]
    job = subprocess.Popen(
        on_two(program, "wait", around=around),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(LD_BIND_NOW="1", **SIZES), start_new_session=True,
    )  # fmt: skip
    try:
        assert job.stdout.readline() == "before\n"
        time.sleep(1)  # its thread runs; it may also be on its way
        trigger.touch()
        wait_until_ended(program)
        if gone == CUT:
            # The launcher itself may wait for the other host for longer.
            os.killpg(job.pid, signal.SIGTERM)
        _, told = job.communicate(timeout=LIMIT)
    finally:
        job.kill()
    assert job.returncode != 0
    lines = [line for line in told.splitlines() if line.startswith("tombolo: ")]
    if gone == CUT:
        assert len(lines) == 1
        assert re.fullmatch(LOST, lines[0])
    else:
        # Before the kernels have closed the connections the host is silent, too.
        assert re.search(f"{GONE}|{LOST}", told), told
