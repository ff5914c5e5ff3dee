// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_detach(MPI_Win win, const void* base) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_detach(win, base);
  if (!window->dynamic()) return raise(*window, MPI_ERR_RMA_FLAVOR);
  return window->attached.remove(base) ? MPI_SUCCESS : raise(*window, MPI_ERR_RMA_ATTACH);
}
