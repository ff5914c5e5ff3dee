// SPDX-License-Identifier: Apache-2.0
// Purpose: window creation, for all flavors. Collective over the window's communicator; needs an
// all-gather, a broadcast and some all-reduces of the host MPI; over several hosts a broadcast of
// each until one hands out the pool.
// Invariants: CW1 a window is created by all its processes or by none; all hear of a failure, and
//                 the communicator's error handler is called once.
// Thread safety: as the MPI calls it stands for.
#pragma once

#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

struct Creation {
  const char* call;
  int flavor;          // MPI_WIN_FLAVOR_*
  void* memory;        // MPI_Win_create: the caller's
  MPI_Aint bytes;      // of this process
  MPI_Aint disp_unit;  // bytes per unit of displacement at this process
  MPI_Info info;
  MPI_Comm comm;
  void* base_out;  // allocate, allocate_shared: where the base address goes (a void**)
  MPI_Win* win;
  const void* caller;  // return address of the call
};

// Returns true and sets `result` (an MPI error code) if the window is ours or its creation failed
// for all; false if all processes leave it to the host MPI.
bool create_window(const Creation& creation, int& result);

// MPI_Win_free of a window of ours.
int free_window(MPI_Win* win, const void* caller);

}  // namespace tombolo::mpi
