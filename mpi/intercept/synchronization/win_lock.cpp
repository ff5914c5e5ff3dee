// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_lock(int type, int rank, int assertion, MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_lock(type, rank, assertion, win);
  if ((assertion & ~all_modes) != 0) return raise(*window, MPI_ERR_ASSERT);
  if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE)
    return raise(*window, MPI_ERR_LOCKTYPE);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (rank < 0 || rank >= window->size) return raise(*window, MPI_ERR_RANK);
  const auto access = type == MPI_LOCK_SHARED ? Access::shared : Access::exclusive;
  return conclude(*window,
                  window->engine().lock(access, static_cast<Home>(rank), promises(assertion)),
                  "MPI_Win_lock");
}
