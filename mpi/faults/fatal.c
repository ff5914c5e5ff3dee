// SPDX-License-Identifier: Apache-2.0
// A mistake on a window whose errors end the job. Usage: fatal CALL, one of put, fetch_and_op,
// lock, flush, unlock.
#include "mpi/faults/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* call = argc > 1 ? argv[1] : "";
  int *base, value = 1;
  MPI_Win win;
  MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  if (rank == 0) {
    if (strcmp(call, "put") == 0) MPI_Put(&value, 1, MPI_INT, ranks, 0, 1, MPI_INT, win);
    if (strcmp(call, "fetch_and_op") == 0)
      MPI_Fetch_and_op(&value, &value, MPI_INT, 0, 0, MPI_SUM, win);
    if (strcmp(call, "lock") == 0) MPI_Win_lock(MPI_LOCK_SHARED, ranks, 0, win);
    if (strcmp(call, "flush") == 0) MPI_Win_flush(0, win);
    if (strcmp(call, "unlock") == 0) MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  return end();
}
