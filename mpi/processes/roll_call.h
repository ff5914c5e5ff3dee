// SPDX-License-Identifier: Apache-2.0
// Purpose: the first wait for each other of processes that are only assumed to have Tombolo. One
// without it never answers; one that is slow answers late, and nothing tells the two apart. So no
// limit ends the wait, but after ten seconds a line on stderr names the ranks that have not come.
//
// Collective; by nonblocking collective calls of the host MPI, one for each rank, behind one
// without a message: no message or collective call of a process without Tombolo meets them.
// Invariants: ROLL1 when it returns, all processes of the communicator have called it.
// Thread safety: as the MPI's collective calls.
#pragma once

#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

// `call`: the program's, for the line. Errors of the host MPI end the wait: the caller's next step
// meets them.
void call_the_roll(MPI_Comm comm, const char* call);

}  // namespace tombolo::mpi
