// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_set_attr(MPI_Win win, int keyval, void* value) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window != nullptr) window->as_new = false;
  return host().Win_set_attr(win, keyval, value);
}
