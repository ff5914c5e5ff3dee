// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of MPI_Alloc_mem that the other processes of a host can map from the start, so
// that a window over it needs no copy.
// Thread safety: yes.
#pragma once

#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

// Null if the host MPI's memory serves as well: on a machine that does not map memory of programs,
// without room for it, or for an alignment greater than a page's.
void* allocate_mappable(MPI_Aint bytes, MPI_Info info);

// False if allocate_mappable() has not given it.
bool free_mappable(void* memory);

}  // namespace tombolo::mpi
