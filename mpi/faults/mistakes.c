// SPDX-License-Identifier: Apache-2.0
// A program that stores into its window while another process puts there, against the rules of the
// separate memory model, and ends in a way of its choice. On `stale` the put is lost, and the
// machine has to say so before the process is gone.
//
//   mpiexec -n 2 mistakes free|finalize|exit|abort|fork|none|nostore|noput|late|beside [STATUS]
//
// `free`, `finalize`: the window is freed, or not, before MPI_Finalize. `exit`: exit(STATUS)
// without either. `abort`: MPI_Abort(STATUS). `none`: no mistake, and the window is freed. `fork`:
// a child exits with 0 while the window is there, then as `free`. `nostore`, `noput`: that promise
// is broken instead. `late`: no mistake, but a store after the last epoch. `beside`: each process
// stores into its own part of contiguous shared memory, where the two parts have a line in common.
#include "mpi/faults/check.h"

#include <sys/wait.h>

enum { kWords = 64, kPart = 99 };  // bytes of a part: its end is odd, and within a line

static MPI_Win win;
static long* words;

static void lose_a_put(void) {
  const long value = 7;
  if (rank == 0) words[0] = 5;  // the mistake: without a lock
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);  // publishes rank 0's line over the put
  MPI_Win_unlock(0, win);
}

static void break_no_store(void) {
  MPI_Win_fence(0, win);
  if (rank == 0) words[3] = 5;
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);  // of the broken NOSTORE
}

static void break_no_put(void) {
  const long value = 7;
  MPI_Win_fence(MPI_MODE_NOPUT, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);  // of the broken NOPUT
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);                               // after the broken NOPUT
}

static void store_beside_each_other(void) {
  char* const part = (char*)words;
  MPI_Win_lock_all(0, win);
  if (rank == 0) part[kPart - 1] = 5;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    part[0] = 7;
    MPI_Win_sync(win);  // publishes rank 1's first byte
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Win_sync(win);  // publishes rank 0's last byte, and its line over that
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(win);
}

static void make_mistake(const char* how) {
  if (strcmp(how, "none") == 0) return;
  if (strcmp(how, "nostore") == 0)
    break_no_store();
  else if (strcmp(how, "noput") == 0)
    break_no_put();
  else if (strcmp(how, "late") == 0)
    memset(words, 1, kWords * sizeof *words);
  else if (strcmp(how, "beside") == 0)
    store_beside_each_other();
  else
    lose_a_put();
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* const how = argv[1];
  const int status = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(how, "beside") == 0)
    MPI_Win_allocate_shared(kPart, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
  else
    MPI_Win_allocate(kWords * (MPI_Aint)sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &words, &win);
  MPI_Win_set_name(win, "the window");
  make_mistake(how);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "fork") == 0) {
    int ended = -1;
    const pid_t child = fork();
    if (child == 0) exit(0);
    waitpid(child, &ended, 0);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) return 3;
  }
  if (strcmp(how, "exit") == 0) exit(status);
  if (strcmp(how, "abort") == 0) {
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, status);
    pause_ms(20000);
  }
  if (strcmp(how, "finalize") != 0) MPI_Win_free(&win);
  MPI_Finalize();
  return status;
}
