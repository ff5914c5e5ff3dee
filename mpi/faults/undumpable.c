// SPDX-License-Identifier: Apache-2.0
// Ranks that may not open each other's descriptors, as those of rootless containers: no rank is
// dumpable, nor root, which may open all. Windows whose memory MPI allocates work all the same, and
// so does the last one, over the program's memory, which wants the kernel's copies but on `stale`.
// Usage: undumpable [apart]: the ranks are apart already, by namespaces.
#include "mpi/faults/check.h"

#include <sys/prctl.h>

enum { nobody = 65534, words = 1024 };

static void use(MPI_Win win, int* base) {
  const int value = 100 + rank, left = (rank + ranks - 1) % ranks;
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, 7, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  EXPECT(base[7] == 100 + left, "%d", base[7]);
}

static void hide(void) {
  if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) MPI_Abort(MPI_COMM_WORLD, 2);
  prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc == 1) hide();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Win win;
    int* base;
    MPI_Win_allocate(words * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                     &win);
    use(win, base);
    MPI_Win_free(&win);
    MPI_Win_allocate_shared(words * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &base, &win);
    use(win, base);
    MPI_Win_free(&win);
  }
  int* const own = calloc(words, sizeof *own);
  MPI_Win created;
  MPI_Win_create(own, words * sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
  use(created, own);
  MPI_Win_free(&created);
  free(own);
  return end();
}
