// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_start(group, assertion, win);
  if ((assertion & ~all_modes) != 0) return raise(*window, MPI_ERR_ASSERT);
  int error = MPI_SUCCESS;
  const auto* ranks = window_ranks(*window, group, error);
  if (ranks == nullptr) return raise(*window, error);
  return conclude(*window, window->engine().start(*ranks, promises(assertion)), "MPI_Win_start");
}
