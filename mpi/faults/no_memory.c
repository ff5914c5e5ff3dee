// SPDX-License-Identifier: Apache-2.0
// Asks for a window that does not fit, then for one that does. Usage: no_memory BYTES SMALLER, each
// per rank. Every rank must hear MPI_ERR_NO_MEM with a number of bytes in the text, and the smaller
// window must work up to its last byte.
#include "mpi/faults/check.h"

static int names_bytes(const char* text, long long least) {
  for (const char* at = text; (at = strpbrk(at, "0123456789")) != NULL;) {
    char* after;
    if (strtoll(at, &after, 10) >= least && strncmp(after, " bytes", 6) == 0) return 1;
    at = after;
  }
  return 0;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const MPI_Aint bytes = argc > 1 ? (MPI_Aint)atoll(argv[1]) : (MPI_Aint)1 << 50;
  const MPI_Aint smaller = argc > 2 ? (MPI_Aint)atoll(argv[2]) : 1 << 16;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Win win = MPI_WIN_NULL;
  char* base = NULL;
  for (int round = 0; round < 3; ++round) {
    const int error = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    EXPECT(class_of(error) == MPI_ERR_NO_MEM, "class %d: %s", class_of(error), text_of(error));
    EXPECT(names_bytes(text_of(error), bytes), "%s", text_of(error));
    if (failures != 0) return end();
    if (rank == 0 && round == 0) printf("%s\n", text_of(error));

    EXPECT(MPI_Win_allocate(smaller, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    if (failures != 0) return end();
    MPI_Win_lock_all(0, win);
    memset(base, 0, (size_t)smaller);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    const char value = 5;
    char seen = 0;
    const int right = (rank + 1) % ranks;
    MPI_Put(&value, 1, MPI_CHAR, right, smaller - 1, 1, MPI_CHAR, win);
    MPI_Win_flush(right, win);
    MPI_Get(&seen, 1, MPI_CHAR, right, smaller - 1, 1, MPI_CHAR, win);
    MPI_Win_unlock_all(win);
    EXPECT(seen == value, "%d", seen);
    MPI_Win_free(&win);
  }
  return end();
}
