// SPDX-License-Identifier: Apache-2.0
// Purpose: requests of our own, as MPI lets a library make them. Each call returns an MPI error
// code.
// Thread safety: any thread that may call MPI.
#pragma once

#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

// A request that is complete once Grequest_complete is called for it.
int start_request(MPI_Request* request);
// A request that is complete, for the request-based calls: they are done when they return.
int completed_request(MPI_Request* request);

}  // namespace tombolo::mpi
