// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/create.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_free(MPI_Win* win) {
  if (win == nullptr || find_window(*win) == nullptr) return host().Win_free(win);
  return free_window(win, __builtin_return_address(0));
}
