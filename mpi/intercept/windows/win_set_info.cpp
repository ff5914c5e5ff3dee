// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_set_info(MPI_Win win, MPI_Info info) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window != nullptr) window->as_new = false;
  return host().Win_set_info(win, info);
}
