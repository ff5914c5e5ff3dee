// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/queries.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_get_attr(MPI_Win win, int keyval, void* value, int* found) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  const auto ours = window != nullptr ? predefined_attribute(*window, keyval) : std::nullopt;
  if (!ours) return host().Win_get_attr(win, keyval, value, found);
  *static_cast<void**>(value) = ours->address;
  *found = 1;
  return MPI_SUCCESS;
}
