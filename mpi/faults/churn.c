// SPDX-License-Identifier: Apache-2.0
// Windows that come and go under MPI_THREAD_MULTIPLE while many others stay: does the memory of the
// process grow with the number ever created? Usage: churn [STAYING [COMING]]
#include "mpi/faults/check.h"

#include <malloc.h>

static size_t allocated(void) {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

static MPI_Win make(void) {
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win);
  return win;
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT(level == MPI_THREAD_MULTIPLE);
  const int staying = argc > 1 ? atoi(argv[1]) : 400;
  const int coming = argc > 2 ? atoi(argv[2]) : 1000;
  MPI_Win* wins = malloc((size_t)staying * sizeof *wins);
  for (int i = 0; i < staying; ++i) wins[i] = make();
  size_t before = 0;
  for (int i = -50; i < coming; ++i) {
    if (i == 0) before = allocated();
    MPI_Win win = make();
    MPI_Win_free(&win);
  }
  const size_t after = allocated();
  if (rank == 0)
    printf("%d windows came and went: %zd bytes more\n", coming, (ssize_t)(after - before));
  EXPECT(after < before + ((size_t)1 << 20), "%zu bytes, then %zu", before, after);
  for (int i = 0; i < staying; ++i) MPI_Win_free(&wins[i]);
  free(wins);
  return end();
}
