// SPDX-License-Identifier: Apache-2.0
// MPI_WIN_GET_ATTR of Fortran, which does not come through MPI_Win_get_attr: it wants the values
// themselves, where C wants their addresses. Each host has a way of its own.
#include "host/mpi/symbols.h"
#include "mpi/intercept/intercept.h"
#include "mpi/windows/queries.h"

using namespace tombolo::mpi;

#if defined(OPEN_MPI)

// All of Fortran's names for it are aliases of this one (mpi/CMakeLists.txt).
TOMBOLO_MPI_CALL void ompi_win_get_attr_f(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value,
                                          int* found, MPI_Fint* error) {
  using Call = void (*)(MPI_Fint*, MPI_Fint*, MPI_Aint*, int*, MPI_Fint*);
  MpiWindow* const window = find_window(host().Win_f2c(*win));
  const auto ours = window != nullptr ? predefined_attribute(*window, *keyval) : std::nullopt;
  if (!ours)
    return reinterpret_cast<Call>(host_symbol<"ompi_win_get_attr_f">())(win, keyval, value, found,
                                                                        error);
  *value = ours->value;
  *found = 1;
  if (error != nullptr) *error = MPI_SUCCESS;
}

// The standard ABI has no Fortran interface of its own.
#elif !defined(TOMBOLO_MPI_ABI)

// MPICH's Fortran interface calls this. Fortran's keys are C's plus one.
TOMBOLO_MPI_CALL int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* found, int type) {
  using Call = int (*)(MPI_Win, int, void*, int*, int);
  MpiWindow* const window = find_window(win);
  const auto ours = window != nullptr ? predefined_attribute(*window, keyval - 1) : std::nullopt;
  if (!ours)
    return reinterpret_cast<Call>(host_symbol<"MPII_Win_get_attr">())(win, keyval, value, found,
                                                                      type);
  *static_cast<MPI_Aint*>(value) = ours->value;
  *found = 1;
  return MPI_SUCCESS;
}

#endif
