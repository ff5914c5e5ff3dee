// SPDX-License-Identifier: Apache-2.0
// Rank 1 is killed; which error do the ranks get that wait for it? Usage: dead_peer CALL, with at
// least four ranks (but for agree), where CALL is the call they wait in:
//   lock      an exclusive, a shared and a lock-all request for a lock that the dead rank holds
//   fence     MPI_Win_fence
//   complete  MPI_Win_complete, with the dead rank as target that never posted
//   wait      MPI_Win_wait, with the dead rank as origin that never completed
//   free      MPI_Win_free
//   create    MPI_Win_allocate of a communicator that has had windows
//   carrier   the same, and rank 1 ends when all have made the host MPI's window for it
//   agree     MPI_Win_free with two ranks, and rank 1 ends when it has closed the window
// Functions of the host MPI below stand in front of the real ones, to end rank 1 there. Each
// survivor expects an error that names rank 1 within 5 seconds, and ends without MPI_Finalize.
#include "mpi/faults/check.h"

#include <dlfcn.h>
#include <signal.h>

static const double limit = 5;
static MPI_Win win;
static int ends_with_group, ends_in_wait;

#define REAL(name) ((__typeof__(&name))in_host(#name))

static void* in_host(const char* name) {
  Dl_info host;
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Comm_rank"), &host);
  return dlsym(dlopen(host.dli_fname, RTLD_LAZY | RTLD_NOLOAD), name);
}

// Asked for when all have the host MPI's window.
int PMPI_Win_get_group(MPI_Win of, MPI_Group* group) {
  if (ends_with_group) kill(getpid(), SIGKILL);
  return REAL(PMPI_Win_get_group)(of, group);
}

// The host MPI makes progress by it in each wait.
int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (ends_in_wait) kill(getpid(), SIGKILL);
  return REAL(PMPI_Request_get_status)(request, flag, status);
}

// A window with hints has parts of its own.
static int allocate_with_hints(void) {
  int* base;
  MPI_Win next;
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "same_size", "true");
  const int error = MPI_Win_allocate(64, 4, hints, MPI_COMM_WORLD, &base, &next);
  MPI_Info_free(&hints);
  return error;
}

static void wait_for_the_end_of(pid_t process) {
  while (kill(process, 0) == 0) pause_ms(1);
}

// Ends while it waits in MPI_Win_free for the other one, to which it has closed the window.
static void end_when_closed(void) {
  ends_in_wait = 1;
  MPI_Win_free(&win);
}

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
  if (strcmp(call, "carrier") == 0) return allocate_with_hints();
  return MPI_Win_free(&win);
}

static void end_in(const char* call) {
  if (strcmp(call, "carrier") == 0) {
    ends_with_group = 1;
    allocate_with_hints();
  }
  if (strcmp(call, "agree") == 0) end_when_closed();
  pause_ms(300);  // the others wait by now
  kill(getpid(), SIGKILL);
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
  if (strcmp(call, "create") == 0 || strcmp(call, "carrier") == 0 || strcmp(call, "agree") == 0)
    earlier_windows();
  MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Group world, dead;
  const int victim = 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &victim, &dead);
  if (rank == victim && strcmp(call, "lock") == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  int process = getpid();
  MPI_Bcast(&process, 1, MPI_INT, victim, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == victim) end_in(call);
  if (strcmp(call, "agree") == 0) wait_for_the_end_of(process);

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
