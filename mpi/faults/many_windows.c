// SPDX-License-Identifier: Apache-2.0
// Many windows at once, of all flavors and some of 0 bytes, each used, each waited in for long
// enough that a process looks after its peers. Usage: many_windows [N]
#include "mpi/faults/check.h"

#include <dirent.h>

static int open_descriptors(void) {
  int n = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) ++n;
  closedir(folder);
  return n - 3;  // ".", ".." and the folder itself
}

static void use(MPI_Win win, MPI_Aint at) {
  const int right = (rank + 1) % ranks, value = 7 + rank;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
  if (at >= 0) MPI_Put(&value, 1, MPI_INT, right, at, 1, MPI_INT, win);
  MPI_Win_unlock(right, win);
}

// Of four flavors in turn; the second four of eight have 0 bytes.
static int flavor_of(int i) { return i % 4; }
static int has_bytes(int i) { return i % 8 < 4; }
static int is_used(int i) { return flavor_of(i) != 3 && has_bytes(i); }

static void make(int i, int* own, int** base, MPI_Win* win) {
  const MPI_Aint bytes = has_bytes(i) ? 64 : 0;
  int error = MPI_SUCCESS;
  switch (flavor_of(i)) {
    case 0:
      error = MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win);
      break;
    case 1:
      error = MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win);
      break;
    case 2:
      error = MPI_Win_create(bytes > 0 ? own : NULL, bytes > 0 ? 4 : 0, 4, MPI_INFO_NULL,
                             MPI_COMM_WORLD, win);
      *base = own;
      break;
    default:
      error = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win);
  }
  EXPECT(error == MPI_SUCCESS, "window %d", i);
}

static void expect_put(int i, const int* base, MPI_Win win) {
  const int left = (rank + ranks - 1) % ranks;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  EXPECT(*base == 7 + left, "window %d: %d", i, *base);
  MPI_Win_unlock(rank, win);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int n = argc > 1 ? atoi(argv[1]) : 1000;
  MPI_Win* wins = calloc((size_t)n, sizeof *wins);
  int** bases = calloc((size_t)n, sizeof *bases);
  int* own = calloc((size_t)n, sizeof *own);
  const double start = now();
  for (int i = 0; i < n; ++i) make(i, &own[i], &bases[i], &wins[i]);
  const double created = now();
  const int before = open_descriptors();
  for (int i = 0; i < n; ++i) use(wins[i], is_used(i) ? 0 : -1);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i)
    if (is_used(i)) expect_put(i, bases[i], wins[i]);
  // Rank 0 comes late to some, so that the others look for its end.
  for (int i = 0; i < n && i < 8; ++i) {
    if (rank == 0) pause_ms(250);
    MPI_Win_fence(0, wins[i]);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[i]);
  }
  const int after = open_descriptors();
  EXPECT(after - before <= ranks, "%d descriptors before, %d after", before, after);
  const double used = now();
  for (int i = 0; i < n; ++i) MPI_Win_free(&wins[i]);
  if (rank == 0)
    printf("%d windows: created in %.2f s, freed in %.2f s; %d descriptors open\n", n,
           created - start, now() - used, after);
  free(wins);
  free(bases);
  free(own);
  return end();
}
