# SPDX-License-Identifier: Apache-2.0
"""Families beside the other interfaces: windows, virtual shared memory, Pthreads programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_instrumentation_test import plugin
from tombolo import compilers, dsm, libraries, mpis, paths, svp
from tombolo.errors import UserError

__all__ = ["plugin"]  # a fixture

COMMAND = [sys.executable, "-P", str(Path(svp.__file__).parent / "__main__.py")]
OPTIONS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]

# Each thread of a family puts to the next process, and gets back the value.
WINDOWS = r"""
#include <mpi.h>
#include <stdio.h>
#include <tombolo/svp.h>

enum { COUNT = 64 };
static MPI_Win win;
static int rank, size;

/* Puts to the next process, and gets back what it has put. */
static void put(tombolo_svp_index_t i, void* argument) {
  const long value = 1000 * rank + (long)i;
  long back = -1;
  (void)argument;
  MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, i, 1, MPI_LONG, win);
  MPI_Win_flush((rank + 1) % size, win);
  MPI_Get(&back, 1, MPI_LONG, (rank + 1) % size, i, 1, MPI_LONG, win);
  MPI_Win_flush((rank + 1) % size, win);
  if (back != value) tombolo_svp_fail(i);
}

int main(int argc, char** argv) {
  const tombolo_svp_range_t all = {.start = 0, .limit = COUNT, .step = 1};
  tombolo_svp_family_t family;
  tombolo_svp_exit_t end;
  long* mine;
  int provided, right = 1, everywhere;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_allocate(COUNT * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
  MPI_Win_lock_all(0, win);
  if (tombolo_svp_create(&family, tombolo_svp_default_place(), &all, put, NULL)) return 3;
  tombolo_svp_sync(&family, &end);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  for (int i = 0; i < COUNT; ++i) right &= mine[i] == 1000 * ((rank + size - 1) % size) + i;
  MPI_Win_unlock(rank, win);
  right &= end.reason == TOMBOLO_SVP_DONE && provided == MPI_THREAD_MULTIPLE;
  MPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (rank == 0) puts(everywhere ? "right" : "wrong");
  MPI_Win_free(&win);
  MPI_Finalize();
  return !everywhere;
}
"""

# Each process fills its part by a family; process 0 adds all up.
SHARED = r"""
#include <stdio.h>
#include <tombolo/dsm.h>
#include <tombolo/svp.h>

enum { COUNT = 100000 };
static void square(tombolo_svp_index_t i, void* numbers) { ((double*)numbers)[i] = (double)i * i; }

int main(void) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread(), n = tombolo_dsm_threads();
  double* const numbers = tombolo_dsm_malloc(COUNT * sizeof *numbers);
  const tombolo_svp_range_t mine = {COUNT / n * me, me + 1 == n ? COUNT : COUNT / n * (me + 1), 1, 0};
  tombolo_svp_family_t family;
  tombolo_dsm_barrier_wait();
  tombolo_svp_create(&family, tombolo_svp_default_place(), &mine, square, numbers);
  tombolo_svp_sync(&family, NULL);
  tombolo_dsm_barrier_wait();
  double sum = 0;
  for (int i = 0; i < COUNT; ++i) sum += numbers[i];
  if (me == 0) printf("%.0f\n", sum);
  tombolo_dsm_finalize();
  return 0;
}
"""


def made(folder: Path, name: str, text: str, compiler: list, *more: str) -> Path:
    source, program = folder / f"{name}.c", folder / name
    source.write_text(text)
    argv = [*compiler, *OPTIONS, source, "-o", program, *svp.flags_of_c(), *more]
    subprocess.run(argv, check=True)
    return program


def run(*words, **environment) -> subprocess.CompletedProcess:
    argv = [*COMMAND, *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, env=os.environ | environment, timeout=120)


@pytest.fixture(scope="module")
def windows(tmp_path_factory) -> Path:
    try:
        mpi = mpis.need("mpich")
        libraries.need(mpi.kind)
    except UserError as lack:
        pytest.skip(str(lack))
    return made(tmp_path_factory.mktemp("windows"), "windows", WINDOWS, [mpi.mpicc])


@pytest.mark.parametrize("machine", ["coherent", "flushed", "stale"])
def test_threads_of_a_family_put_and_get(windows, machine):
    done = run("run", "-n", 3, "--machine", machine, windows)
    if machine == "flushed" and "clflush" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    libraries.need_program(dsm.LAUNCHER)
    return made(tmp_path_factory.mktemp("shared"), "shared", SHARED, ["cc"], *dsm.flags())


@pytest.mark.parametrize(("transport", "workers"), [("map", "3"), ("window", "1")])
def test_threads_of_a_family_use_virtual_shared_memory(shared, transport, workers):
    how = ["dsm", "run", "-n", 2, "--transport", transport]
    done = run(*how, shared, TOMBOLO_SVP_WORKERS=workers)
    assert (done.returncode, done.stdout) == (0, "333328333350000\n"), done.stderr


def families_run_alone_and_not_as_processes(program: Path, transport: str) -> None:
    assert run("svp", "run", program, "100").returncode == 0
    done = run("dsm", "run", "-n", 4, "--transport", transport, program, "100")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tombolo: families run on the threads of a process"), done.stderr
    assert "start it without `tombolo dsm run`" in done.stderr, done.stderr


def test_families_refuse_threads_that_are_processes(tmp_path):
    text = (paths.checkout() / "examples/svp/divisors.c").read_text()
    families_run_alone_and_not_as_processes(made(tmp_path, "divisors", text, ["cc"]), "map")


@pytest.mark.parametrize("transport", ["map", "window"])
def test_families_of_rebuilt_programs_refuse_them_too(tmp_path, plugin, transport):
    source, program = paths.checkout() / "examples/svp/divisors.c", tmp_path / "divisors"
    arguments = [*OPTIONS, "-pthread", str(source), "-o", str(program), *svp.flags_of_c()]
    subprocess.run(compilers.command_line("clang", arguments), check=True)
    families_run_alone_and_not_as_processes(program, transport)
