// SPDX-License-Identifier: Apache-2.0
// Rank 1 is killed; which error do the ranks get that wait for it? Usage: dead_peer CALL, with at
// least four ranks, where CALL is the call they wait in:
//   lock      an exclusive, a shared and a lock-all request for a lock that the dead rank holds
//   fence     MPI_Win_fence
//   complete  MPI_Win_complete, with the dead rank as target that never posted
//   wait      MPI_Win_wait, with the dead rank as origin that never completed
//   free      MPI_Win_free
//   create    MPI_Win_allocate of a communicator that has had windows
// Each survivor expects an error that names rank 1 within 5 seconds, and ends without MPI_Finalize.
#include "mpi/faults/check.h"

#include <signal.h>

static const double limit = 5;
static MPI_Win win;

static int wait_in(const char* call, MPI_Group dead, double* start) {
  const int value = 1;
  *start = now();
  if (strcmp(call, "lock") == 0) {
    if (rank == 2) return MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (rank == 3) return MPI_Win_lock_all(0, win);
    return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  }
  if (strcmp(call, "fence") == 0) return MPI_Win_fence(0, win);
  if (strcmp(call, "complete") == 0) {
    MPI_Win_start(dead, 0, win);
    if (rank == 0) return MPI_Win_complete(win);
    return MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
  }
  if (strcmp(call, "wait") == 0) {
    MPI_Win_post(dead, 0, win);
    return MPI_Win_wait(win);
  }
  if (strcmp(call, "create") == 0) {
    int* base;
    MPI_Win next;
    return MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &next);
  }
  return MPI_Win_free(&win);
}

// From the third one on, windows take parts of earlier ones.
static void earlier_windows(void) {
  for (int i = 0; i < 3; ++i) {
    int* base;
    MPI_Win earlier;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &earlier);
    MPI_Win_free(&earlier);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* call = argc > 1 ? argv[1] : "lock";
  int* base;
  if (strcmp(call, "create") == 0) earlier_windows();
  MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Group world, dead;
  const int victim = 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &victim, &dead);
  if (rank == victim && strcmp(call, "lock") == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == victim) {
    pause_ms(300);  // the others wait by now
    kill(getpid(), SIGKILL);
  }

  double start;
  const int error = wait_in(call, dead, &start);
  const double seconds = now() - start;
  EXPECT(error != MPI_SUCCESS, "after %.1f s", seconds);
  EXPECT(seconds < limit, "%.1f s", seconds);
  EXPECT(strstr(text_of(error), "rank 1 ") != NULL, "%s", text_of(error));
  if (failures == 0) {
    printf("survivor %d: %.2f s: %s\n", rank, seconds, text_of(error));
    fflush(stdout);
  }
  pause_ms(500);  // or the others hear that this rank has died as well
  exit(failures != 0);
}
