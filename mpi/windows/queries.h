// SPDX-License-Identifier: Apache-2.0
// Purpose: a program's questions about a window of ours.
// Thread safety: any thread.
#pragma once

#include <optional>

#include "mpi/windows/mpi_window.h"

namespace tombolo::mpi {

struct SharedRegion {
  MPI_Aint bytes;
  MPI_Aint disp_unit;
  void* base;  // where this process reaches it by loads and stores; null if it cannot
};

// The region of `rank`, or with MPI_PROC_NULL that of the lowest rank that has bytes. One that
// loads and stores of this process do not reach has no bytes (MPI 4.1). Returns an MPI error class.
int shared_region(MpiWindow& window, int rank, SharedRegion& region);

// A predefined attribute: C gets its address, Fortran its value.
struct Attribute {
  void* address;
  MPI_Aint value;
};

// The attribute behind MPI_WIN_BASE and its like; nullopt for all other keys.
std::optional<Attribute> predefined_attribute(MpiWindow& window, int keyval);

// A new info object with the hints in use, the host's and ours.
int window_info(MpiWindow& window, MPI_Info* info);

}  // namespace tombolo::mpi
