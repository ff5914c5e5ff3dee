// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_flush_local(int rank, MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_flush_local(rank, win);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (rank < 0 || rank >= window->size) return raise(*window, MPI_ERR_RANK);
  return conclude(*window, window->engine().flush_local(static_cast<Home>(rank)),
                  "MPI_Win_flush_local");
}
