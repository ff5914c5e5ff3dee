// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/create.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info,
                                    MPI_Comm comm, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (create_window({"MPI_Win_create", MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm,
                     nullptr, win, __builtin_return_address(0)},
                    result))
    return result;
  return host().Win_create(base, size, disp_unit, info, comm, win);
}

#if TOMBOLO_HAVE_LARGE_COUNT
TOMBOLO_MPI_CALL int MPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                                      MPI_Comm comm, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (create_window({"MPI_Win_create", MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm,
                     nullptr, win, __builtin_return_address(0)},
                    result))
    return result;
  return host().Win_create_c(base, size, disp_unit, info, comm, win);
}
#endif
