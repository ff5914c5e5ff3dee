// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Compare_and_swap(const void* origin, const void* compare, void* result,
                                          MPI_Datatype type, int rank, MPI_Aint displacement,
                                          MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Compare_and_swap(origin, compare, result, type, rank, displacement, win);
  return compare_and_swap(*window, origin, compare, result, type, rank, displacement);
}
