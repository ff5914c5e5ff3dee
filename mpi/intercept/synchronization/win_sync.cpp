// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_sync(MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_sync(win);
#if !defined(OPEN_MPI)  // which takes the call anywhere
  if (const Status fits = window->engine().may_sync(); !fits.ok())
    return raise(*window, fits, "MPI_Win_sync");
#endif
  return conclude(*window, window->engine().sync(), "MPI_Win_sync");
}
