// SPDX-License-Identifier: Apache-2.0
// One large window: access at both ends and across each power of two of bytes, with displacement
// units of 1 and of 8 bytes. Usage: big_window BYTES, of all ranks together.
#include "mpi/faults/check.h"

#include <stdint.h>

static void probe(MPI_Win win, int target, MPI_Aint byte, int unit) {
  const uint64_t value = 0x1234567800000000u + (uint64_t)byte;
  uint64_t seen = 0, one = 1, before = 0;
  const MPI_Aint at = byte / unit;
  MPI_Put(&value, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
  MPI_Win_flush(target, win);
  MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, at, MPI_SUM, win);
  MPI_Win_flush(target, win);
  MPI_Get(&seen, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
  MPI_Win_flush(target, win);
  EXPECT(before == value && seen == value + 1, "at byte %lld: %llx, then %llx", (long long)byte,
         (unsigned long long)before, (unsigned long long)seen);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const long long all = argc > 1 ? atoll(argv[1]) : 1ll << 33;
  const MPI_Aint bytes = (MPI_Aint)(all / ranks);
  for (int unit = 1; unit <= 8; unit += 7) {
    MPI_Win win;
    uint64_t* base;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const double start = now();
    const int error = MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    const double created = now() - start;
    EXPECT(error == MPI_SUCCESS, "%s", text_of(error));
    if (error != MPI_SUCCESS) return end();
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const int right = (rank + 1) % ranks;
    MPI_Win_lock_all(0, win);
    probe(win, right, 0, unit);
    probe(win, right, bytes - 8, unit);
    for (MPI_Aint byte = 1 << 12; byte < bytes; byte *= 2) {
      probe(win, right, byte - 8, unit);
      probe(win, right, byte, unit);
    }
    uint64_t value = 0;
    EXPECT(MPI_Put(&value, 1, MPI_UINT64_T, right, bytes / unit, 1, MPI_UINT64_T, win) !=
           MPI_SUCCESS);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    const uint64_t want = 0x1234567800000000u + (uint64_t)(bytes - 8) + 1;
    EXPECT(base[bytes / 8 - 1] == want);
    MPI_Win_unlock(rank, win);
    const double freeing = now();
    MPI_Win_free(&win);
    if (rank == 0)
      printf("%lld bytes by %d ranks: created in %.3f s, freed in %.3f s\n", all, ranks, created,
             now() - freeing);
  }
  return end();
}
