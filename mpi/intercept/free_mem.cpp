// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/allocated_memory.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Free_mem(void* base) {
  return free_mappable(base) ? MPI_SUCCESS : TOMBOLO_HOST(Free_mem)(base);
}
