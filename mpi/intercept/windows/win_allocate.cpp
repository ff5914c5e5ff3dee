// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/create.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                                      void* base, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (create_window({"MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, disp_unit, info,
                     comm, base, win, __builtin_return_address(0)},
                    result))
    return result;
  return host().Win_allocate(size, disp_unit, info, comm, base, win);
}

#if TOMBOLO_HAVE_LARGE_COUNT
TOMBOLO_MPI_CALL int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                                        MPI_Comm comm, void* base, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (create_window({"MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, disp_unit, info,
                     comm, base, win, __builtin_return_address(0)},
                    result))
    return result;
  return host().Win_allocate_c(size, disp_unit, info, comm, base, win);
}
#endif
