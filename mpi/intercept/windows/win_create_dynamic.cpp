// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/create.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (create_window({"MPI_Win_create_dynamic", MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1, info, comm,
                     nullptr, win, __builtin_return_address(0)},
                    result))
    return result;
  return host().Win_create_dynamic(info, comm, win);
}
