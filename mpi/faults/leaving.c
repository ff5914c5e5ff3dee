// SPDX-License-Identifier: Apache-2.0
// Ends in one of many ways while windows of all flavors exist. Usage: leaving HOW:
//   normal    frees the windows
//   finalize  leaves them to MPI_Finalize
//   exit      exit() without MPI_Finalize
//   abort, segv, kill   each rank, by that signal
//   one       rank 1 kills itself, the others wait for a lock of its
//   loop      creates and frees windows until the job is ended
#include "mpi/faults/check.h"

#include <signal.h>

enum { flavors = 4, bytes = 1 << 16 };

static void* memory;

static void create(MPI_Win* wins) {
  int* base;
  MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[0]);
  MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[1]);
  MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[2]);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &wins[3]);
}

static void use(MPI_Win win) {
  const int value = rank;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % ranks, 0, win);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, rank, 1, MPI_INT, win);
  MPI_Win_unlock((rank + 1) % ranks, win);
}

static void leave(const char* how, MPI_Win win) {
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "one") == 0) {
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) kill(getpid(), SIGKILL);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "normal";
  MPI_Win wins[flavors];
  memory = calloc(1, bytes);
  do {
    create(wins);
    use(wins[0]);
    use(wins[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    leave(how, wins[0]);
    if (strcmp(how, "finalize") == 0) break;
    for (int i = 0; i < flavors; ++i) MPI_Win_free(&wins[i]);
  } while (strcmp(how, "loop") == 0);
  const int status = end();
  free(memory);
  return status;
}
