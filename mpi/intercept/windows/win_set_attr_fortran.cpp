// SPDX-License-Identifier: Apache-2.0
// MPI_WIN_SET_ATTR of Fortran, which does not come through MPI_Win_set_attr. Each host has a way of
// its own.
#include "host/mpi/symbols.h"
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

#if defined(OPEN_MPI)

// All of Fortran's names for it are aliases of this one (mpi/CMakeLists.txt).
TOMBOLO_MPI_CALL void ompi_win_set_attr_f(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value,
                                          MPI_Fint* error) {
  using Call = void (*)(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Fint*);
  MpiWindow* const window = find_window(host().Win_f2c(*win));
  if (window != nullptr) window->as_new = false;
  reinterpret_cast<Call>(host_symbol<"ompi_win_set_attr_f">())(win, keyval, value, error);
}

// The standard ABI has no Fortran interface of its own.
#elif !defined(TOMBOLO_MPI_ABI)

// MPICH's Fortran interface calls this.
TOMBOLO_MPI_CALL int MPII_Win_set_attr(MPI_Win win, int keyval, void* value, int type) {
  using Call = int (*)(MPI_Win, int, void*, int);
  MpiWindow* const window = find_window(win);
  if (window != nullptr) window->as_new = false;
  return reinterpret_cast<Call>(host_symbol<"MPII_Win_set_attr">())(win, keyval, value, type);
}

#endif
