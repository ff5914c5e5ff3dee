// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: takes a derived datatype apart into blocks.
// Invariants: every handle that the host hands out on the way is freed again.
// Thread safety: may be called from any thread that may call MPI.
#pragma once

#include <memory>

#include "mpi/datatypes/type_info.h"

namespace tombolo::mpi {

// A description of `datatype`, which need not be committed, or null with an MPI error code in
// `*error`.
std::shared_ptr<TypeInfo> flatten(MPI_Datatype datatype, int* error);

}  // namespace tombolo::mpi
