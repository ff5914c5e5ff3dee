// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_attach(win, base, size);
  if (!window->dynamic()) return raise(*window, MPI_ERR_RMA_FLAVOR);
  if (size < 0) return raise(*window, MPI_ERR_SIZE);
  if (!window->attached.add(base, static_cast<std::uint64_t>(size)))
    return raise(*window, MPI_ERR_RMA_ATTACH);
  return MPI_SUCCESS;
}
