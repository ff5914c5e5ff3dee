// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/queries.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit,
                                          void* base) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_shared_query(win, rank, size, disp_unit, base);
  SharedRegion region{};
  if (const int error = shared_region(*window, rank, region); error != MPI_SUCCESS)
    return raise(*window, error);
  *size = region.bytes;
  *disp_unit = static_cast<int>(region.disp_unit);
  *static_cast<void**>(base) = region.base;
  return MPI_SUCCESS;
}

#if TOMBOLO_HAVE_LARGE_COUNT
TOMBOLO_MPI_CALL int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size,
                                            MPI_Aint* disp_unit, void* base) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) [[unlikely]]
    return host().Win_shared_query_c(win, rank, size, disp_unit, base);
  SharedRegion region{};
  if (const int error = shared_region(*window, rank, region); error != MPI_SUCCESS)
    return raise(*window, error);
  *size = region.bytes;
  *disp_unit = region.disp_unit;
  *static_cast<void**>(base) = region.base;
  return MPI_SUCCESS;
}
#endif
