// SPDX-License-Identifier: Apache-2.0
// The host MPI makes progress in each MPI_Win_test that finds the epoch open, and in few of the
// other calls. Its function below, by which it does, stands in front of the real one and counts.
#include "mpi/faults/check.h"

#include <dlfcn.h>

enum { polls = 2000, fewest_calls = 128 };
static int driven;

static void* in_host(const char* name) {
  Dl_info host;
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Comm_rank"), &host);
  return dlsym(dlopen(host.dli_fname, RTLD_LAZY | RTLD_NOLOAD), name);
}

int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  static __typeof__(&PMPI_Request_get_status) real;
  if (real == NULL) real = (__typeof__(real))in_host("PMPI_Request_get_status");
  ++driven;
  return real(request, flag, status);
}

static void by_tests(MPI_Win win, MPI_Group self) {
  int done = 1;
  MPI_Win_post(self, 0, win);
  driven = 0;
  for (int i = 0; i < polls; ++i) {
    MPI_Win_test(win, &done);
    EXPECT(!done);
  }
  EXPECT(driven >= polls, "%d times in %d tests", driven, polls);
  MPI_Win_start(self, 0, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
}

static void by_flushes(MPI_Win win) {
  const int most = polls / fewest_calls + 1;
  MPI_Win_lock_all(0, win);
  driven = 0;
  for (int i = 0; i < polls; ++i) MPI_Win_flush(rank, win);
  EXPECT(driven <= most, "%d times in %d flushes", driven, polls);
  MPI_Win_unlock_all(win);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win win;
  MPI_Group self;
  int* base;
  MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Comm_group(MPI_COMM_SELF, &self);
  by_tests(win, self);
  by_flushes(win);
  MPI_Group_free(&self);
  MPI_Win_free(&win);
  return end();
}
