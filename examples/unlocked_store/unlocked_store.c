// SPDX-License-Identifier: Apache-2.0
// A program with a mistake, to be caught. Rank 0 gathers a table with one column for each rank: the
// others put their columns into it under a lock, and rank 0 stores its own without one. The columns
// lie side by side, so that a cache line holds values of several ranks.
//
// Memory that is not coherent writes back whole lines: the line that rank 0 stored into puts old
// values back in place of those that the others put meanwhile. MPI's separate memory model
// forbids such a store; with coherent memory the result is right all the same.
//
// With --fixed rank 0 stores its column under an exclusive lock of its own window, which is right
// on every machine.
//
// Checked: rank 0 reads the table under a lock and compares each value with the one expected.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { kRows = 128 };

typedef struct {
  int rank, ranks, fixed;
  uint64_t* cells;  // on rank 0: kRows rows of `ranks` values each
  MPI_Win win;
} Table;

static uint64_t expected(int row, int column) {
  return 1000003u * (uint64_t)row + (uint64_t)column + 1;
}

static void store_own_column(Table* t) {
  if (t->fixed) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, t->win);
  for (int row = 0; row < kRows; ++row)
    t->cells[row * t->ranks] = expected(row, 0);  // the mistake: rank 0 holds no lock
  if (t->fixed) MPI_Win_unlock(0, t->win);
}

static void put_column(Table* t) {
  uint64_t values[kRows];
  MPI_Datatype column;
  MPI_Type_vector(kRows, 1, t->ranks, MPI_UINT64_T, &column);
  MPI_Type_commit(&column);
  for (int row = 0; row < kRows; ++row) values[row] = expected(row, t->rank);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, t->win);
  MPI_Put(values, kRows, MPI_UINT64_T, 0, t->rank, 1, column, t->win);
  MPI_Win_unlock(0, t->win);
  MPI_Type_free(&column);
}

static int count_wrong(Table* t) {
  int wrong = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, t->win);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < t->ranks; ++column)
      wrong += t->cells[row * t->ranks + column] != expected(row, column);
  MPI_Win_unlock(0, t->win);
  return wrong;
}

int main(int argc, char** argv) {
  Table t;
  int wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
  t.fixed = argc == 2 && strcmp(argv[1], "--fixed") == 0;
  if (argc > 1 && !t.fixed) {
    if (t.rank == 0) fprintf(stderr, "usage: unlocked_store [--fixed]\n");
    MPI_Finalize();
    return 2;
  }
  MPI_Aint bytes = t.rank == 0 ? (MPI_Aint)sizeof *t.cells * kRows * t.ranks : 0;
  MPI_Win_allocate(bytes, sizeof *t.cells, MPI_INFO_NULL, MPI_COMM_WORLD, &t.cells, &t.win);
  double start = MPI_Wtime();
  if (t.rank == 0) store_own_column(&t);
  MPI_Barrier(MPI_COMM_WORLD);
  if (t.rank != 0) put_column(&t);
  MPI_Barrier(MPI_COMM_WORLD);
  if (t.rank == 0) wrong = count_wrong(&t);
  double seconds = MPI_Wtime() - start;
  MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Win_free(&t.win);
  if (t.rank == 0)
    printf("RESULT %s ranks=%d values=%d wrong=%d seconds=%.3f\n", wrong == 0 ? "ok" : "WRONG",
           t.ranks, kRows * t.ranks, wrong, seconds);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
