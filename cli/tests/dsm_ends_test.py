# SPDX-License-Identifier: Apache-2.0
"""How programs of tombolo/dsm.h end: by a signal, a wild access, a status, or a death beside them. And those of
Pthreads, by the death of a memory server."""

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from dsm_pthreads_test import all_ended, compiled
from dsm_test import COMMAND, TRANSPORTS, built, compile_c, run, sums
from tombolo import dsm
from tombolo.dsm import Choice

__all__ = ["built", "compile_c", "sums"]  # fixtures

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


@pytest.fixture(scope="module")
def endless(compile_c):
    return compile_c("endless", ENDLESS)


@dataclass(frozen=True)
class SharedMemory:
    """A /dev/shm of the test's own, where this user may mount one: other jobs of this host make and
    remove files in the one of all."""

    inside: tuple[str, ...]  # in front of a command
    folder: Path

    def left_over(self) -> list[str]:
        return sorted(file.name for file in self.folder.iterdir() if self.inside or abandoned(file.name))


def abandoned(name: str) -> bool:
    """One of Tombolo's files, named by a process that has ended."""
    owner = re.match(r"tombolo-[0-9a-f]+-[0-9a-f]+-([0-9a-f]+)-", name)
    return owner is not None and not Path(f"/proc/{int(owner[1], 16)}").exists()


@pytest.fixture(scope="module")
def shared_memory():
    mount = "mount -t tmpfs tmpfs /dev/shm && echo mounted && exec cat"
    argv, pipe = ["unshare", "-m", "sh", "-c", mount], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as holder:
        if holder.stdout.readline() == "mounted\n":
            enter = ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", f"--wd={Path.cwd()}")
            yield SharedMemory(enter, Path(f"/proc/{holder.pid}/root", "dev/shm"))
        else:
            yield SharedMemory((), Path("/dev/shm"))
        holder.stdin.close()


def test_a_killed_memory_server_ends_all_with_one_message(endless, shared_memory):
    before = shared_memory.left_over()
    argv = [
        *shared_memory.inside,
        *COMMAND,
        "dsm",
        "run",
        "-n",
        "2",
        "--servers",
        "2",
        "--transport",
        "window",
        endless,
    ]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    threads = dict(map(int, job.stdout.readline().split()) for _ in range(2))
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    servers = sorted(set(map(int, children)) - set(threads.values()))
    assert len(servers) == 2
    os.kill(servers[1], signal.SIGKILL)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGKILL
    assert told == "tombolo: memory server 1: process 3 was killed by signal 9 (Killed)\n"
    assert not any(alive(pid) for pid in [*threads.values(), *servers])
    assert shared_memory.left_over() == before


def memory_servers_of(program: int) -> list[int]:
    """Of a Pthreads program, in the order in which they were started, once there are two, or after 10 seconds."""
    for _ in range(1000):
        found = [pid for pid in all_below(program) if name_of(pid) == "tombolo-memory"]
        if len(found) == 2:
            break
        time.sleep(0.01)
    return sorted(found, key=started_at)


def all_below(program: int) -> list[int]:
    """The process and all below it."""
    found = [program]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:  # the thread has ended
                continue
    return found


def started_at(pid: int) -> tuple[int, int]:
    """In ticks; of two in one tick the smaller number is the first, but where numbers begin again."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]), pid


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""


def test_a_killed_memory_server_of_a_pthreads_program_ends_all_with_one_message(shared_memory):
    program = compiled("ends_check")
    before = shared_memory.left_over()
    words = ["-n", "2", "--servers", "2", "--transport", "window", program, "wait"]
    argv = [*shared_memory.inside, *COMMAND, "dsm", "run", *words]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline() == "before\n"
        servers = memory_servers_of(job.pid)
        assert [len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in servers] == [1, 1]
        os.kill(servers[1], signal.SIGKILL)
        _, told = job.communicate(timeout=10)
    finally:
        job.kill()
    assert job.returncode != 0
    assert re.fullmatch(
        rf"tombolo: memory server 1 \(process {servers[1]}\) was killed by signal 9 \(Killed\); the program ends\n",
        told,
    )
    assert all_ended(program)
    assert shared_memory.left_over() == before


def test_the_status_of_a_thread_that_fails_is_the_programs(sums):
    done = run("-n", 2, sums, "7")
    assert done.returncode == 7
    assert done.stderr == "", "the program itself tells its causes"


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
def test_a_killed_process_ends_all_with_one_message(endless, how, shared_memory):
    before = shared_memory.left_over()
    argv = [*shared_memory.inside, *COMMAND, "dsm", "run", "-n", "3", *how, str(endless)]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = dict(map(int, job.stdout.readline().split()) for _ in range(3))
    os.kill(pids[1], signal.SIGKILL)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGKILL
    assert told == "tombolo: process 1 was killed by signal 9 (Killed)\n"
    assert not any(alive(pid) for pid in pids.values())
    assert shared_memory.left_over() == before


def test_a_thread_that_leaves_before_the_end_is_named_once(sums):
    done = run("-n", 3, sums, "0")
    assert done.returncode == 1
    assert re.fullmatch(r"tombolo: rank 0: rank 1 \(process \d+\) of the program has died\n", done.stderr)


ENDS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tombolo/dsm.h>
#include <unistd.h>

static int deeper(int depth) {
  volatile char page[4096];
  page[0] = (char)depth;
  return depth < 0 ? 0 : deeper(depth + 1) + page[0];
}

int main(int argc, char** argv) {
  (void)argc;
  tombolo_dsm_init();
  char* const block = tombolo_dsm_malloc(4096);
  block[tombolo_dsm_thread()] = 1;
  tombolo_dsm_barrier_wait();
  if (tombolo_dsm_thread() == 1) {
    if (strcmp(argv[1], "null") == 0) *(volatile int*)16 = 1;
    if (strcmp(argv[1], "beyond") == 0) ((volatile char*)block)[3l << 30] = 1;
    if (strcmp(argv[1], "overflow") == 0) return deeper(0);
    if (strcmp(argv[1], "exit") == 0) exit(7);
    if (strcmp(argv[1], "_exit") == 0) _exit(8);
    if (strcmp(argv[1], "abort") == 0) abort();
  }
  tombolo_dsm_barrier_wait();
  tombolo_dsm_finalize();
  if (strcmp(argv[1], "after the end") == 0) ((volatile char*)block)[0] = 1;
  return 0;
}
"""


@pytest.fixture(scope="module")
def ends(compile_c):
    return compile_c("ends", ENDS)


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
@pytest.mark.parametrize(
    ("part", "address"),
    [("null", "0x10, which"), ("beyond", "0x2000c0000000, which"), ("overflow", "0x7f")],
)
def test_a_wild_access_is_a_segv_that_names_the_address(ends, how, part, address):
    done = run("-n", 3, *how, ends, part)
    assert done.returncode == 128 + signal.SIGSEGV
    wild, ended = done.stderr.splitlines()
    assert f"tombolo: the program has accessed {address}" in wild
    assert wild.endswith("(SIGSEGV); it was never in the memory of tombolo_dsm_malloc")
    assert ended == "tombolo: process 1 was killed by signal 11 (Segmentation fault)"


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
def test_an_access_behind_the_end_is_told_that_the_memory_has_ended(ends, how):
    done = run("-n", 1, *how, ends, "after the end")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "0x200000000000, which it may not (SIGSEGV); the memory" in done.stderr
    assert "has ended with tombolo_dsm_finalize" in done.stderr


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
@pytest.mark.parametrize(("part", "status"), [("exit", 7), ("_exit", 8), ("abort", 134)])
def test_a_thread_that_ends_while_others_are_at_a_barrier_ends_all(ends, how, part, status, shared_memory):
    before = shared_memory.left_over()
    done = run("-n", 3, *how, ends, part, inside=shared_memory.inside)
    assert done.returncode == status, done.stderr
    assert done.stderr.count("\n") == (part == "abort")
    assert shared_memory.left_over() == before


# The launcher gets the processor late when it hears of the first end.
LATE = r"""
#include <dlfcn.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

int poll(struct pollfd* all, nfds_t count, int most) {
  int (*const real)(struct pollfd*, nfds_t, int) = (int (*)(struct pollfd*, nfds_t, int))dlsym(RTLD_NEXT, "poll");
  static int late = 3;
  const int ready = real(all, count, most);
  if (ready > 0 && most > 0) {
    sleep(late);
    late = 0;
  }
  return ready;
}
"""


def test_a_launcher_that_is_late_tells_alone_of_a_death(ends, tmp_path):
    """Those that wait find the death within 0.1 s."""
    (tmp_path / "late.c").write_text(LATE)
    library = tmp_path / "late.so"
    options = ["-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *options, tmp_path / "late.c", "-o", library, "-ldl"], check=True)
    environment = dsm.environment(Choice()) | {"LD_PRELOAD": str(library)}
    argv = dsm.command(3, [str(ends), "abort"])
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (134, "tombolo: process 1 was killed by signal 6 (Aborted)\n")


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
