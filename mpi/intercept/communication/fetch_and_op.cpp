// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int rank,
                                      MPI_Aint displacement, MPI_Op op, MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Fetch_and_op(origin, result, type, rank, displacement, op, win);
  return fetch_and_op(*window, origin, result, type, rank, displacement, op);
}
