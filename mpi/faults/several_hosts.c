// SPDX-License-Identifier: Apache-2.0
// Purpose: windows whose processes are on several hosts (or in several pid namespaces): all kinds
// of epochs, memory that passes from one window to the next, and windows that only the host MPI can
// serve. Arguments: the number of windows, one after the other; single or multiple, the threads.
#include "mpi/faults/check.h"

enum { kWords = 4096, kSlots = 64 };

// A put to each peer's slot, seen by its owner in the next epoch, beside stores of the owner.
static void fences(MPI_Win window, long* own, long tag) {
  for (int i = 0; i < kWords; ++i) own[i] = tag;
  MPI_Win_fence(0, window);
  for (int target = 0; target < ranks; ++target) {
    const long value = tag * 100 + rank;
    MPI_Put(&value, 1, MPI_LONG, target, rank, 1, MPI_LONG, window);
  }
  MPI_Win_fence(0, window);
  for (int origin = 0; origin < ranks; ++origin)
    EXPECT(own[origin] == tag * 100 + origin, "slot %d holds %ld, tag %ld", origin, own[origin],
           tag);
  for (int i = ranks; i < kWords; ++i) EXPECT(own[i] == tag, "word %d holds %ld", i, own[i]);
  MPI_Win_fence(0, window);
}

static void ring(MPI_Win window, const long* own, long tag) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Group all, to, from;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &right, &to);
  MPI_Group_incl(all, 1, &left, &from);
  const long value = tag + rank;
  MPI_Win_post(from, 0, window);
  MPI_Win_start(to, 0, window);
  MPI_Put(&value, 1, MPI_LONG, right, kSlots, 1, MPI_LONG, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  EXPECT(own[kSlots] == tag + left, "got %ld", own[kSlots]);
  MPI_Group_free(&all);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
}

static void locks(MPI_Win window, int rounds) {
  enum { kCounter = 2 * kSlots, kGuarded = kCounter + 1 };
  const long zero = 0, one = 1;
  long seen, before;
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(&zero, 1, MPI_LONG, 0, kCounter, 1, MPI_LONG, window);
    MPI_Put(&zero, 1, MPI_LONG, 0, kGuarded, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, kCounter, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&seen, 1, MPI_LONG, 0, kGuarded, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    ++seen;
    MPI_Put(&seen, 1, MPI_LONG, 0, kGuarded, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Get(&before, 1, MPI_LONG, 0, kCounter, 1, MPI_LONG, window);
  MPI_Get(&seen, 1, MPI_LONG, 0, kGuarded, 1, MPI_LONG, window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);  // rank 0 stores there next
  EXPECT(before == (long)rounds * ranks, "counted %ld", before);
  EXPECT(seen == (long)rounds * ranks, "guarded %ld", seen);
}

int main(int argc, char** argv) {
  int provided;
  const int wanted =
      argc > 2 && strcmp(argv[2], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int windows = argc > 1 ? atoi(argv[1]) : 4;
  for (int i = 1; i <= windows; ++i) {
    long* own;
    MPI_Win window;
    // Sizes differ, so that one rank's memory becomes another's.
    MPI_Win_allocate((kWords + i % 3 * 512) * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &own, &window);
    fences(window, own, i);
    ring(window, own, i);
    locks(window, 100);
    fences(window, own, -i);
    MPI_Win_free(&window);
  }
  static long mine[kWords];
  MPI_Win window;
  MPI_Win_create(mine, sizeof mine, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  fences(window, mine, 7);
  MPI_Win_free(&window);
  return end();
}
