// SPDX-License-Identifier: Apache-2.0
// MPI_WIN_GET_ATTR of Fortran, which does not come through MPI_Win_get_attr: it wants the values
// themselves, where C wants their addresses. Each host has a way of its own.
#include "mpi/host/symbols.h"
#include "mpi/intercept/intercept.h"

// The standard ABI has no Fortran interface of its own.
#if !defined(TOMBOLO_MPI_ABI)
namespace tombolo::mpi {
namespace {

// A predefined attribute, by C's key, as Fortran's integer; false if the key is not of those.
bool predefined_attribute(const MpiWindow& window, int keyval, MPI_Aint& value) {
  if (keyval == MPI_WIN_BASE)
    value = reinterpret_cast<MPI_Aint>(window.base);
  else if (keyval == MPI_WIN_SIZE)
    value = window.bytes;
  else if (keyval == MPI_WIN_DISP_UNIT)
    value = window.disp_unit;
  else if (keyval == MPI_WIN_CREATE_FLAVOR)
    value = window.flavor;
  else if (keyval == MPI_WIN_MODEL)
    value = window.model;
  else
    return false;
  return true;
}

}  // namespace
}  // namespace tombolo::mpi

using namespace tombolo::mpi;

#if defined(OPEN_MPI)

// All of Fortran's names for it are aliases of this one (mpi/CMakeLists.txt).
TOMBOLO_MPI_CALL void ompi_win_get_attr_f(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value,
                                          int* found, MPI_Fint* error) {
  using Call = void (*)(MPI_Fint*, MPI_Fint*, MPI_Aint*, int*, MPI_Fint*);
  const MpiWindow* const window = find_window(host().Win_f2c(*win));
  if (window == nullptr || !predefined_attribute(*window, *keyval, *value))
    return reinterpret_cast<Call>(host_symbol<"ompi_win_get_attr_f">())(win, keyval, value, found,
                                                                        error);
  *found = 1;
  if (error != nullptr) *error = MPI_SUCCESS;
}

#else

// MPICH's Fortran interface calls this. Fortran's keys are C's plus one; C's keys come here too.
TOMBOLO_MPI_CALL int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* found, int type) {
  using Call = int (*)(MPI_Win, int, void*, int*, int);
  const MpiWindow* const window = find_window(win);
  MPI_Aint attribute = 0;
  if (window != nullptr && predefined_attribute(*window, keyval - 1, attribute)) {
    *static_cast<MPI_Aint*>(value) = attribute;
    *found = 1;
    return MPI_SUCCESS;
  }
  return reinterpret_cast<Call>(host_symbol<"MPII_Win_get_attr">())(win, keyval, value, found,
                                                                    type);
}

#endif
#endif
