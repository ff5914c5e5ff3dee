# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked while another thread of the C library holds the dynamic linker's lock: the rule is in
host/processes/shared_fork.h."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from tombolo import dsm_pthreads, launch, libraries

LIMIT = 60

# Its constructor runs with the lock held, until the writer of the FIFO closes it.
SLOW_LIBRARY = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_for_the_end(void) {
  char byte;
  int fifo = open(getenv("SLOW_FIFO"), O_RDONLY);
  while (read(fifo, &byte, 1) > 0) {
  }
  close(fifo);
}
"""

# The library is loaded by a thread of the C library's own, which has no part in the program's
# world. The member of the team finds the linker's lock held, as a child of fork() would; the keeper
# does not look.
THREADS_PROGRAM = r"""
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static char byte;
static void load(union sigval value) { dlopen(value.sival_ptr, RTLD_NOW); }
static void* run(void* argument) { return argument; }
int main(int argc, char** argv) {
  struct aiocb one = {.aio_fildes = open("/dev/zero", O_RDONLY), .aio_buf = &byte, .aio_nbytes = 1};
  one.aio_sigevent.sigev_notify = SIGEV_THREAD;
  one.aio_sigevent.sigev_notify_function = load;
  one.aio_sigevent.sigev_value.sival_ptr = argv[argc - 1];
  if (aio_read(&one) != 0) return 1;
  open(getenv("SLOW_FIFO"), O_WRONLY);  // the library's constructor has come
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, argv) != 0) return 2;
  kill(getpid(), SIGTERM);
  for (;;) pause();
}
"""

FORKING_PROGRAM = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void* load(void* path) { return dlopen(path, RTLD_NOW); }
int main(int argc, char** argv) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, load, argv[argc - 1]) != 0) return 1;
  int fifo = open(getenv("SLOW_FIFO"), O_WRONLY);  // the library's constructor has come
  const pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  waitpid(child, &status, 0);
  close(fifo);
  pthread_join(thread, NULL);
  printf("the child ended with %d\n", WEXITSTATUS(status));
  return 0;
}
"""


def compiled(source: str, to: Path, *options: str) -> Path:
    command = ["cc", "-O1", "-pthread", "-x", "c", "-", "-o", to, *options]
    subprocess.run(command, input=source, text=True, check=True)
    return to


def run_beside_a_held_linker(tmp_path: Path, source: str, environment: dict[str, str]) -> subprocess.CompletedProcess:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    library = compiled(SLOW_LIBRARY, tmp_path / "slow.so", "-shared", "-fPIC")
    command = [compiled(source, tmp_path / "program"), library]
    environment |= {"SLOW_FIFO": str(fifo)}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment)


def processes_of(program: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "exe").readlink() == program:
                found.append(entry.name)
    return found


def test_the_keeper_of_a_pthreads_program_looks_up_no_function(tmp_path):
    done = run_beside_a_held_linker(tmp_path, THREADS_PROGRAM, dsm_pthreads.environment(processes=2))
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
    for _ in range(100):
        if not processes_of(tmp_path / "program"):
            return
        time.sleep(0.1)
    assert processes_of(tmp_path / "program") == []


def test_fork_beside_windows_waits_for_no_thread_that_loads_a_library(tmp_path):
    environment = dict(os.environ) | {"LD_PRELOAD": launch.preload(libraries.need("mpich"))}
    done = run_beside_a_held_linker(tmp_path, FORKING_PROGRAM, environment)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "the child ended with 7\n")
