// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Rget_accumulate(const void* origin, int origin_count,
                                         MPI_Datatype origin_type, void* result, int result_count,
                                         MPI_Datatype result_type, int rank, MPI_Aint displacement,
                                         int target_count, MPI_Datatype target_type, MPI_Op op,
                                         MPI_Win win, MPI_Request* request) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Rget_accumulate(origin, origin_count, origin_type, result, result_count,
                                  result_type, rank, displacement, target_count, target_type, op,
                                  win, request);
  const int error = get_accumulate(
      *window, {origin, origin_count, origin_type}, {result, result_count, result_type},
      {rank, displacement, target_count, target_type}, op, "MPI_Rget_accumulate");
  return error != MPI_SUCCESS ? error : completed_request(request);
}

#if TOMBOLO_HAVE_LARGE_COUNT
TOMBOLO_MPI_CALL int MPI_Rget_accumulate_c(const void* origin, MPI_Count origin_count,
                                           MPI_Datatype origin_type, void* result,
                                           MPI_Count result_count, MPI_Datatype result_type,
                                           int rank, MPI_Aint displacement, MPI_Count target_count,
                                           MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                                           MPI_Request* request) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Rget_accumulate_c(origin, origin_count, origin_type, result, result_count,
                                    result_type, rank, displacement, target_count, target_type, op,
                                    win, request);
  const int error = get_accumulate(
      *window, {origin, origin_count, origin_type}, {result, result_count, result_type},
      {rank, displacement, target_count, target_type}, op, "MPI_Rget_accumulate");
  return error != MPI_SUCCESS ? error : completed_request(request);
}
#endif
