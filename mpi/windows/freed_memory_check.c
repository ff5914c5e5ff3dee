// SPDX-License-Identifier: Apache-2.0
// Purpose: an ordinary MPI program that sums into memory of its peers through windows that it makes
// for each exchange, as star forests do, and looks at its memory after MPI_Win_free only.
// cli/tests/findings_test.py runs it.
//
//   mpiexec -n 3 freed_memory_check
//
// Exits with 0 if all sums are right, and else writes the others to stderr.
// Thread safety: single-threaded.
#include "mpi/faults/check.h"

enum { kRounds = 20, kMost = 3000 };

typedef void Epoch(MPI_Win win, const double* ones, int n);

static void add_to_all(MPI_Win win, const double* ones, int n) {
  for (int i = 1; i <= ranks; ++i)
    MPI_Accumulate(ones, n, MPI_DOUBLE, (rank + i) % ranks, 0, n, MPI_DOUBLE, MPI_SUM, win);
  // Behind the sums, a put by the left neighbour alone.
  MPI_Put(ones, 1, MPI_DOUBLE, (rank + 1) % ranks, n, 1, MPI_DOUBLE, win);
}

static void by_lock(MPI_Win win, const double* ones, int n) {
  for (int i = 1; i <= ranks; ++i) {
    const int peer = (rank + i) % ranks;
    MPI_Win_lock(MPI_LOCK_SHARED, peer, MPI_MODE_NOCHECK, win);
    MPI_Accumulate(ones, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, MPI_SUM, win);
    if (i == 1) MPI_Put(ones, 1, MPI_DOUBLE, peer, n, 1, MPI_DOUBLE, win);
    MPI_Win_unlock(peer, win);
  }
}
static void by_lock_all(MPI_Win win, const double* ones, int n) {
  MPI_Win_lock_all(0, win);
  add_to_all(win, ones, n);
  MPI_Win_unlock_all(win);
}
static void by_fence(MPI_Win win, const double* ones, int n) {
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  add_to_all(win, ones, n);
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);
}
static void by_post(MPI_Win win, const double* ones, int n) {
  MPI_Group all;
  MPI_Win_get_group(win, &all);
  MPI_Win_post(all, MPI_MODE_NOSTORE, win);
  MPI_Win_start(all, 0, win);
  add_to_all(win, ones, n);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Group_free(&all);
}

static void sums(const char* name, Epoch* epoch, double* memory, const double* ones) {
  for (int round = 0; round < kRounds; ++round) {
    const int n = 1 + round * (kMost - 1) / (kRounds - 1);
    for (int i = 0; i <= n; ++i) memory[i] = i;
    MPI_Win win;
    MPI_Win_create(memory, (MPI_Aint)sizeof *memory * (n + 1), sizeof *memory, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    epoch(win, ones, n);
    MPI_Win_free(&win);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += memory[i] != i + ranks;
    wrong += memory[n] != 1;
    EXPECT(wrong == 0, "%s: %d of %d wrong", name, wrong, n + 1);
  }
}

// Of no bytes at all ranks but the first, and of none at all.
static void little_memory(double* memory, const double* ones) {
  for (int first = 0; first <= 1; ++first) {
    MPI_Win win;
    const int has = first && rank == 0;
    memory[0] = 0;
    MPI_Win_create(has ? memory : NULL, has ? sizeof *memory : 0, sizeof *memory, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Accumulate(ones, first, MPI_DOUBLE, 0, 0, first, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    EXPECT(memory[0] == (has ? ranks : 0), "%g", memory[0]);
  }
}

// A store after the last epoch is the program's own business.
static void store_behind_the_last_epoch(double* memory) {
  MPI_Win win;
  MPI_Win_create(memory, (MPI_Aint)sizeof *memory * kMost, sizeof *memory, MPI_INFO_NULL,
                 MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  for (int i = 0; i < kMost; ++i) memory[i] = -i;
  MPI_Win_free(&win);
  for (int i = 0; i < kMost; ++i) EXPECT(memory[i] == -i, "[%d] is %g", i, memory[i]);
}

static void attached(double* memory, const double* ones) {
  MPI_Win win;
  MPI_Aint mine, theirs;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, memory, sizeof *memory);
  memory[0] = 0;
  MPI_Get_address(memory, &mine);
  MPI_Sendrecv(&mine, 1, MPI_AINT, (rank + ranks - 1) % ranks, 0, &theirs, 1, MPI_AINT,
               (rank + 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % ranks, 0, win);
  MPI_Accumulate(ones, 1, MPI_DOUBLE, (rank + 1) % ranks, theirs, 1, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_unlock((rank + 1) % ranks, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(win, memory);
  MPI_Win_free(&win);
  EXPECT(memory[0] == 1, "%g", memory[0]);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  double* const memory = malloc(sizeof *memory * (kMost + 1));
  double* const ones = malloc(sizeof *ones * kMost);
  for (int i = 0; i < kMost; ++i) ones[i] = 1;
  sums("lock", by_lock, memory, ones);
  sums("lock_all", by_lock_all, memory, ones);
  sums("fence", by_fence, memory, ones);
  sums("post", by_post, memory, ones);
  little_memory(memory, ones);
  store_behind_the_last_epoch(memory);
  attached(memory, ones);
  free(memory);
  free(ones);
  return end();
}
