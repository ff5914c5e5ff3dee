// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Accumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                                    int rank, MPI_Aint displacement, int target_count,
                                    MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Accumulate(origin, origin_count, origin_type, rank, displacement, target_count,
                             target_type, op, win);
  return accumulate(*window, {origin, origin_count, origin_type},
                    {rank, displacement, target_count, target_type}, op, "MPI_Accumulate");
}

#if TOMBOLO_HAVE_LARGE_COUNT
TOMBOLO_MPI_CALL int MPI_Accumulate_c(const void* origin, MPI_Count origin_count,
                                      MPI_Datatype origin_type, int rank, MPI_Aint displacement,
                                      MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                                      MPI_Win win) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Accumulate_c(origin, origin_count, origin_type, rank, displacement, target_count,
                               target_type, op, win);
  return accumulate(*window, {origin, origin_count, origin_type},
                    {rank, displacement, target_count, target_type}, op, "MPI_Accumulate");
}
#endif
