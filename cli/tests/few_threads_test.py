# SPDX-License-Identifier: Apache-2.0
"""Programs between hosts where the host has no thread for the runtime: the process says so and ends, and the launcher
ends the others, which would wait for its answers."""

import subprocess
from pathlib import Path

import pytest
from tombolo import dsm_pthreads, mpis

LIMIT = 60

# It stands in the place of a limit of the kernel's, which does not hold the root user: the first
# process gets as many threads as THREADS_LEFT says.
FEW_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  static int given;
  int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  Dl_info caller = {0};
  dladdr(__builtin_return_address(0), &caller);
  const char* rank = getenv("PMI_RANK");
  if (rank != NULL && strcmp(rank, "0") == 0 && caller.dli_fname != NULL && strstr(caller.dli_fname, "libtombolo") &&
      given++ >= atoi(getenv("THREADS_LEFT")))
    return EAGAIN;
  return next(thread, attributes, run, argument);
}
"""

PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void* run(void* argument) {
  int file = open("/dev/null", O_WRONLY);
  return write(file, "x", 1) == 1 ? argument : NULL;
}
int main(int argc, char** argv) {
  pthread_t thread;
  void* result = NULL;
  if (pthread_create(&thread, NULL, run, argv) != 0 || pthread_join(thread, &result) != 0) return 2;
  return result == argv ? 0 : 3;
}
"""


def compiled(source: str, to: Path, *options: str) -> Path:
    command = ["cc", "-O1", "-pthread", "-x", "c", "-", "-o", to, *options]
    subprocess.run(command, input=source, text=True, check=True)
    return to


@pytest.mark.parametrize(
    ("left", "lacks"),
    [(0, "that answers the other processes"), (1, "for the system calls of another process"), (2, None)],
)
def test_a_process_that_the_others_would_wait_for_ends_with_a_sentence(left, lacks, tmp_path, monkeypatch):
    if mpis.find("mpich") is None:
        pytest.skip("mpich is not installed here")
    library = compiled(FEW_THREADS, tmp_path / "few.so", "-shared", "-fPIC")
    program = compiled(PROGRAM, tmp_path / "program")
    monkeypatch.setenv("LD_PRELOAD", str(library))  # the runtime is put in front of it
    monkeypatch.setenv("THREADS_LEFT", str(left))
    job = dsm_pthreads.mpi_job([str(program)], 2, "48MiB", "4MiB", mpi="mpich")
    done = subprocess.run(job.argv, capture_output=True, text=True, timeout=LIMIT, env=job.env)
    if lacks is None:
        assert (done.returncode, done.stderr) == (0, "")
        return
    sentence = f"tombolo: the host has no thread {lacks}: Resource temporarily unavailable; see ulimit -u"
    assert done.returncode != 0
    assert done.stderr.count(sentence) == 1
