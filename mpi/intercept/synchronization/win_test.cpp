// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_test(MPI_Win win, int* flag) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_test(win, flag);
  bool done = false;
  const Status status = window->engine().test(done);
  *flag = done ? 1 : 0;
  if (!done) window->drive_host();  // the program waits, if in its own way
  return conclude(*window, status, "MPI_Win_test");
}
