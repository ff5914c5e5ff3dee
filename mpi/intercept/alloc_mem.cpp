// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "mpi/intercept/intercept.h"
#include "mpi/windows/allocated_memory.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  void* const memory = baseptr == nullptr ? nullptr : allocate_mappable(size, info);
  if (memory == nullptr) return TOMBOLO_HOST(Alloc_mem)(size, info, baseptr);
  std::memcpy(baseptr, &memory, sizeof memory);
  return MPI_SUCCESS;
}
