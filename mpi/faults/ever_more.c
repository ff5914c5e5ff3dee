// SPDX-License-Identifier: Apache-2.0
// A window of two ranks, or of one, before the one of all.
#include "mpi/faults/check.h"

static void use_window_of(MPI_Comm among) {
  MPI_Win window;
  char* memory = NULL;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, among, &memory, &window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  MPI_Comm pair;
  begin(&argc, &argv);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  use_window_of(pair);
  use_window_of(MPI_COMM_WORLD);
  MPI_Comm_free(&pair);
  return end();
}
