// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/queries.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_get_info(MPI_Win win, MPI_Info* info) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_get_info(win, info);
  return window_info(*window, info);
}
