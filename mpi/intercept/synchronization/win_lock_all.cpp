// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_lock_all(int assertion, MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_lock_all(assertion, win);
  if ((assertion & ~all_modes) != 0) return raise(*window, MPI_ERR_ASSERT);
  return conclude(*window, window->engine().lock_all(promises(assertion)), "MPI_Win_lock_all");
}
