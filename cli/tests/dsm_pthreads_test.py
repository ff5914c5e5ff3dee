# SPDX-License-Identifier: Apache-2.0
"""Unchanged threaded programs whose threads run in processes: beside the same under Pthreads."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tombolo import dsm_pthreads, paths
from tombolo.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ROOT / "pthreads" / "checks"
LIMIT = 60
TOO_MANY = (
    "tombolo: pthread_create: there is room for {} threads at once, the first one included: give a larger -n "
    "(TOMBOLO_DSM_PROCESSES)\n"
)


def compiled(name: str, *options: str) -> Path:
    source = next(CHECKS.glob(f"{name}.c*"))
    program = paths.home() / "build" / "dsm-checks" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = ["cc"] if source.suffix == ".c" else ["c++", "-std=c++20"]
    made = program.with_suffix(f".{os.getpid()}")
    subprocess.run([*compiler, "-O1", "-pthread", *options, source, "-o", made], check=True)
    made.rename(program)
    return program


def run(command: list, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    texts = [str(part) for part in command]
    return subprocess.run(texts, capture_output=True, text=True, timeout=LIMIT, env=environment)


def ours(command: list, **settings) -> subprocess.CompletedProcess:
    return run(command, dsm_pthreads.environment(**settings))


def processes_of(program: Path) -> list[int]:
    """The processes that run it, those of its threads and their keeper among them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "exe").readlink() == program:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def all_ended(program: Path) -> bool:
    for _ in range(50):
        if not processes_of(program):
            return True
        time.sleep(0.1)
    return False


def installed(program: str) -> Path:
    """Of requirements/system-test.txt."""
    path = shutil.which(program)
    if path is None:
        lack = f"{program} is not installed"
        pytest.fail(lack) if os.environ.get("CI") else pytest.skip(lack)
    return Path(path)


@pytest.fixture(params=["map", "window"])
def transport(request) -> str:
    return request.param


def same(command: list, **settings) -> None:
    expected = run(command)
    outcome = ours(command, **settings)
    assert outcome.stderr == expected.stderr
    assert outcome.stdout == expected.stdout
    assert outcome.returncode == expected.returncode


# --- The calls -----------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3, 7])
@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("threads_check", 60),
        ("mutexes_check", 800),
        ("conditions_check", 60),
        ("others_check", 60),
        ("kernel_check", 5),
        ("own_pages_check", 60),
    ],
)
def test_calls_answer_as_under_pthreads(name, rounds, threads, transport):
    same([compiled(name), threads, rounds], transport=transport)


# The environment lies in the memory of the program: its array by setenv(), `environ` by its name.
SET_ENVIRONMENT = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
extern char** environ;
static void* look(void* found) {
  *(int*)found = environ[0] != NULL && getenv("MADE") != NULL;
  return NULL;
}
int main(void) {
  setenv("MADE", "here", 1);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    int found = 0;
    if (pthread_create(&thread, NULL, look, &found) != 0) return 1;
    pthread_join(thread, NULL);
    printf("%d\\n", found);
  }
}
"""


def test_a_process_enters_a_program_that_has_set_its_environment(transport, tmp_path):
    source, program = tmp_path / "environment.c", tmp_path / "environment"
    source.write_text(SET_ENVIRONMENT)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-pthread", source, "-o", program], check=True)
    same([program], transport=transport)


@pytest.mark.parametrize("machine", ["coherent", "flushed", "stale"])
def test_memory_servers_hold_more_than_all_caches_and_run_no_thread(machine):
    """8 MiB of two threads, in caches of 3 MiB together."""
    command = [compiled("own_pages_check"), 2, 2, 1024]
    done = ours(
        command, processes=3, memory="64MiB", transport="window", machine=machine, cache="1MiB", servers=2, stats="json"
    )
    assert (done.returncode, done.stdout) == (0, "0 wrong\n"), done.stderr
    counts = [json.loads(line.removeprefix("tombolo: stats ")) for line in done.stderr.splitlines()]
    *threads, first, second = counts
    assert [each["rank"] for each in threads] == ["0", "1", "2"]
    assert [each.get("memory_server") for each in (first, second)] == ["0", "1"]
    held = first["dsm_held_pages"], second["dsm_held_pages"]
    assert min(held) >= 1024 and max(held) < 1100, "striped over both"


def test_a_program_without_threads_has_no_memory_servers():
    outcome = ours(["true"], processes=2, memory="4MiB", cache="1MiB", transport="window", servers=2, stats="text")
    assert re.findall(r"stats (\w+=\d)", outcome.stderr) == ["rank=0"]


def test_pages_of_one_thread_stay_in_place():
    """In 100 rounds of two threads that each store to 16 pages, and read one of the other's."""
    done = ours([compiled("own_pages_check"), 2, 100], processes=3, memory="64MiB", transport="window", stats="text")
    assert done.returncode == 0, done.stderr
    counts = [dict(re.findall(r"(dsm_\w+)=(\d+)", line)) for line in done.stderr.splitlines() if " stats " in line]
    assert len(counts) == 3
    for each in counts:
        assert int(each["dsm_diffs"]) < 40, "its own pages are sent twice at most"
        assert int(each["dsm_write_faults"]) < 60, "most are left to the program"
        assert int(each["dsm_lock_waits"]) < 50, "a barrier takes no lock"


@pytest.mark.parametrize("machine", ["flushed", "stale"])
@pytest.mark.parametrize(
    "name",
    [
        "threads_check",
        "mutexes_check",
        "others_check",
        "kernel_check",
        "cancellation_check",
        "c11_check",
        "robust_check",
        "own_pages_check",
    ],
)
def test_calls_answer_alike_on_each_machine(name, machine):
    same([compiled(name), 3, 10], transport="window", machine=machine)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("name", "rounds"), [("cancellation_check", 30), ("c11_check", 40), ("robust_check", 20)])
def test_rarer_calls_answer_as_under_pthreads(name, rounds, threads, transport):
    same([compiled(name), threads, rounds], transport=transport)


@pytest.mark.parametrize("cache", ["1MiB", "2MiB"])
def test_a_cache_that_is_smaller_than_the_programs_memory_serves(cache):
    same([compiled("kernel_check"), 4, 5], transport="window", cache=cache)
    same([compiled("threads_check"), 3, 20], transport="window", cache=cache)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("pigz", "-c -p 4"), ("pbzip2", "-c -p4 -k"), ("zstd", "-q -T4 -c"), ("xz", "-c -T4 -1")],
)
@pytest.mark.parametrize("machine", ["coherent", "stale"])
def test_programs_that_others_have_built_write_the_same_bytes(program, arguments, machine, tmp_path):
    installed(program)
    data = tmp_path / "data"
    data.write_bytes((ROOT / "dsm/pages/fault_pages.cpp").read_bytes() * 300)
    command = [program, *arguments.split(), str(data)]
    settings = dsm_pthreads.environment(processes=10, transport="window", machine=machine)
    expected = subprocess.run(command, capture_output=True, timeout=LIMIT, check=True)
    outcome = subprocess.run(command, capture_output=True, timeout=LIMIT, env=settings)
    assert outcome.stderr == expected.stderr
    assert outcome.stdout == expected.stdout


def test_a_program_that_waits_for_memory_by_itself_is_told():
    outcome = ours([compiled("cxx_check")], transport="window")
    assert "by a call of its own (futex), not by Pthreads" in outcome.stderr
    assert outcome.returncode == 1


def test_a_program_of_cxx_answers_as_under_pthreads():
    same([compiled("cxx_check")])


@pytest.mark.parametrize("options", [("-no-pie",), ("-Wl,-z,norelro",), ("-Wl,-z,now", "-O3")])
def test_programs_are_served_however_they_are_linked(options, transport):
    same([compiled("threads_check", *options), 3, 20], transport=transport)


def test_two_thousand_threads_are_created_and_joined(transport):
    outcome = ours([compiled("threads_check"), 4, 2000], transport=transport)
    assert "2000 threads one after another: 1999000" in outcome.stdout, outcome.stderr


def test_more_threads_than_processes_are_refused_as_pthreads_does(transport):
    """In two of its processes, of which the first is told."""
    outcome = ours([compiled("ends_check"), "too many"], processes=4, transport=transport)
    assert "3 threads, then Resource temporarily unavailable" in outcome.stdout, outcome.stderr
    assert outcome.returncode == 0
    assert outcome.stderr == TOO_MANY.format(4)


def test_caches_of_many_processes_have_memory_together():
    outcome = ours([compiled("ends_check"), "turns"], processes=120, memory="64MiB", transport="window")
    assert outcome.returncode == 0, outcome.stderr


# --- The process that the program is -------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        "turns",
        "signals",
        "ordinary signals",
        "signals held back",
        "signals at the start",
        "calls in handlers",
        "children",
        "pids",
        "main leaves",
        "main leaves with locks",
        "exit",
        "one stream",
        "exec of nothing",
    ],
)
def test_a_program_is_one_process(part, transport):
    same([compiled("ends_check"), part], transport=transport)


def test_lines_of_eight_threads_are_whole(transport):
    program = compiled("ends_check")
    for _ in range(10):
        lines = ours([program, "lines"], transport=transport).stdout.splitlines()
        assert sorted(lines) == sorted(run([program, "lines"]).stdout.splitlines())


def test_files_and_the_working_directory_are_the_programs(tmp_path, transport):
    same([compiled("ends_check"), "files", tmp_path / "file"], transport=transport)


def test_a_stream_that_the_program_opened_is_all_threads(tmp_path, transport):
    same([compiled("ends_check"), "streams", tmp_path / "file"], transport=transport)
    outcome = run([compiled("ends_check"), "count", tmp_path / "file"])
    assert "2401 lines, 2400 of them whole" in outcome.stdout


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ("exit", 7),
        ("_exit", 8),
        ("busy", 7),
        ("exit beside a loop", 7),
        ("exit beside a read", 7),
        ("exit beside sigwait", 7),
        ("main ends beside a line", 9),
        ("abort", -signal.SIGABRT),
        ("segv", -signal.SIGSEGV),
        ("overflow", -signal.SIGSEGV),
        ("killed", -signal.SIGKILL),
        ("terminated", -signal.SIGTERM),
        ("exec", 4),
        ("never joined", 5),
        ("main killed", -signal.SIGKILL),
    ],
)
def test_the_end_of_one_thread_is_that_of_the_program(part, status, transport):
    program = compiled("ends_check")
    outcome = ours([program, part], transport=transport)
    assert outcome.returncode == status, outcome.stderr
    assert outcome.stdout == run([program, part]).stdout
    # A fault is named, and then the process that it has ended.
    faults = status == -signal.SIGSEGV
    assert outcome.stderr.count("tombolo: ") == (status < 0) + faults
    if faults:
        told = {
            "segv": "accessed 0x10, which it may not (SIGSEGV); it was never in the memory that the program's",
            "overflow": "which it may not (SIGSEGV); in the memory that the program's threads share no page",
        }
        assert told[part] in outcome.stderr
    assert all_ended(program)


def test_a_thread_that_waits_for_itself_is_told(transport):
    outcome = ours([compiled("ends_check"), "twice"], transport=transport)
    assert "pthread_mutex_lock: the thread has the mutex" in outcome.stderr
    assert outcome.returncode == -signal.SIGABRT


@pytest.mark.parametrize(
    ("which", "by"),
    [("first", signal.SIGKILL), ("first", signal.SIGTERM), ("keeper", signal.SIGKILL), ("thread", signal.SIGKILL)],
)
def test_a_killed_process_ends_all_of_them(which, by, transport):
    program = compiled("ends_check")
    started = subprocess.Popen(
        [program, "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dsm_pthreads.environment(transport=transport),
    )
    assert started.stdout.readline() == "before\n"
    while len(found := processes_of(program)) < 3:
        time.sleep(0.01)
    names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in found}
    keeper = next(pid for pid, name in names.items() if name == "tombolo-keeper" and parent(pid) == started.pid)
    thread = next(pid for pid in found if parent(pid) == keeper)
    os.kill({"first": started.pid, "keeper": keeper, "thread": thread}[which], by)
    _, told = started.communicate(timeout=10)
    assert started.returncode != 0
    assert told.count("tombolo: ") == (by == signal.SIGKILL), "a line tells of SIGKILL, none of SIGTERM"
    if by == signal.SIGKILL and which != "keeper":
        killed = thread if which == "thread" else started.pid
        assert f"(process {killed}) was killed by signal 9" in told
        assert ("tombolo: compute server " in told) == (which == "thread")
    assert all_ended(program)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_as_many_processes_as_there_may_be_are_for_those_that_compute():
    told = [dsm_pthreads.environment(n=threads).get("TOMBOLO_DSM_PROCESSES") for threads in (1, 4, 4092, 4093, 4096)]
    assert told == ["5", "8", "4096", "4096", "4096"]


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value"), [("memory", "much"), ("memory", "1"), ("processes", "1"), ("memory", "9999999TiB")]
)
def test_a_setting_that_is_not_understood_is_an_error(setting, value):
    outcome = ours(["true"], **{setting: value})
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("tombolo: the program does not start: TOMBOLO_DSM_")


@pytest.mark.parametrize(
    ("transport", "variable", "value", "told"),
    [
        ("window", "TOMBOLO_DSM_PROTOCOL", "sequential", "protocol sequential is not there for programs of Pthreads"),
        ("window", "TOMBOLO_DSM_SERVERS", "some", "TOMBOLO_DSM_SERVERS is 'some'"),
        ("map", "TOMBOLO_DSM_SERVERS", "2", "transport map has no use for memory servers: all processes map the same"),
        ("map", "TOMBOLO_MACHINE", "stale", "transport map needs a coherent machine, and stale is none"),
        ("map", "TOMBOLO_DSM_PROTOCOL", "regional", "TOMBOLO_DSM_PROTOCOL is of pages that processes cache"),
        ("map", "TOMBOLO_DSM_CACHE", "0", "TOMBOLO_DSM_CACHE is of pages that processes cache"),
        ("map", "TOMBOLO_DSM_WITHOUT", "read-ahead", "TOMBOLO_DSM_WITHOUT is of pages that processes cache"),
        ("window", "TOMBOLO_DSM_WITHOUT", "later", "TOMBOLO_DSM_WITHOUT is 'later'; it may be read-ahead, own-pages"),
        ("window", "TOMBOLO_DSM_CACHE", "0", "a cache of 0 bytes is too small for a program of Pthreads"),
        ("window", "TOMBOLO_DSM_MEMORY", "8TiB", "a memory of 8796"),
        ("map", "TOMBOLO_DSM_HEAP", "4MiB", "TOMBOLO_DSM_HEAP is called TOMBOLO_DSM_MEMORY"),
        ("map", "TOMBOLO_DSM_MEMORY", "0", "TOMBOLO_DSM_MEMORY is '0'; it may be a size from 1MiB to 16TiB"),
    ],
)
def test_a_setting_that_programs_of_pthreads_do_not_have_is_refused_at_the_start(transport, variable, value, told):
    settings = dsm_pthreads.environment(transport=transport) | {variable: value}
    outcome = run([compiled("threads_check"), "1", "1"], settings)
    assert outcome.returncode == 1
    assert outcome.stdout == ""
    assert outcome.stderr.startswith(f"tombolo: the program does not start: {told}")
    assert outcome.stderr.count("\n") == 1


def test_sizes_that_need_more_memory_than_there_is_are_named(transport):
    outcome = ours(["true"], processes=9, memory="7TiB", transport=transport)
    assert outcome.returncode == 1
    assert "It is for 9 processes and a heap of 7696581394432 bytes" in outcome.stderr
    assert "-n (TOMBOLO_DSM_PROCESSES), --memory (TOMBOLO_DSM_MEMORY)" in outcome.stderr
    assert ("--cache (TOMBOLO_DSM_CACHE)" in outcome.stderr) == (transport == "window")


def test_the_memory_of_the_environment_is_the_heap_of_a_program_of_pthreads():
    settings = dsm_pthreads.environment() | {"TOMBOLO_DSM_MEMORY": "4MiB"}
    outcome = run([compiled("ends_check"), "full heap"], settings)
    assert outcome.stdout == "before\nCannot allocate memory\nthe program goes on\nat exit\n", outcome.stderr


def test_a_full_heap_is_null_and_errno(transport):
    outcome = ours([compiled("ends_check"), "full heap"], memory="4MiB", transport=transport)
    assert outcome.stdout == "before\nCannot allocate memory\nthe program goes on\nat exit\n"


def test_calls_that_are_not_there_are_refused_by_name(tmp_path, transport):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    outcome = ours([compiled("refused_check"), file], transport=transport)
    assert outcome.returncode == 0
    told = re.findall("tombolo: (.*) is refused in a program whose threads run in processes: ", outcome.stderr)
    assert told == [
        "fork",
        "sem_open",
        "pthread_mutexattr_setpshared",
        "pthread_setcanceltype",
        "timer_create with SIGEV_THREAD",
        "timer_create",
        "execvpe",
        "dlopen",
        "setuid",
        "setgid",
        "setresuid",
        "initgroups",
        "mmap",
        "mmap at a fixed address",
        "mremap to a fixed address",
    ]
    lacking = os.strerror(errno.ENOTSUP)
    results = dict(re.findall(r"(.*): (.*)\n", outcome.stdout))
    others = {
        "dlopen before": "done",
        "setgid before": "done",
        "where something is": os.strerror(errno.EEXIST),
        "timer_create, in main": "done",
        "timer_create of SIGTERM, in main": "done",
        "timer_create of SIGUSR1, in main": "done",
        "timer_create of SIGUSR1, in a thread": "done",
    }
    assert {call: result for call, result in results.items() if result != lacking} == others
    assert len(results) == 28
    assert "\nafter the first pthread_create, and between hosts, a library would be loaded" in outcome.stdout
    assert outcome.stdout.endswith("\nthe variable has 1\n")


def test_programs_whose_library_waits_by_itself_are_refused(tmp_path):
    source = tmp_path / "open.c"
    source.write_text("int main(void) { return 0; }\n")
    program = tmp_path / "open"
    library = ["cc", "-shared", "-x", "c", source, "-o", tmp_path / "libgomp.so.1", "-Wl,-soname,libgomp.so.1"]
    subprocess.run(library, check=True)
    linked = ["-Wl,--no-as-needed", tmp_path / "libgomp.so.1", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", source, "-o", program, *linked], check=True)
    with pytest.raises(UserError, match="OpenMP's threads of libgomp.so.1"):
        dsm_pthreads.check(str(program))


def test_programs_that_cannot_be_served_are_named(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with pytest.raises(UserError, match="is no ELF program, but a script or the like"):
        dsm_pthreads.check(str(script))
    with pytest.raises(UserError, match="gone cannot be read"):
        dsm_pthreads.check_is_no_script(tmp_path / "gone")
    with pytest.raises(UserError, match="no such program"):
        dsm_pthreads.check("no-such-program-here")
    with pytest.raises(UserError, match="linked statically"):
        dsm_pthreads.check(str(compiled("threads_check", "-static")))
    dsm_pthreads.check("true")
