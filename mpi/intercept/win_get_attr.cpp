// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Win_get_attr(MPI_Win win, int keyval, void* value, int* found) {
  MpiWindow* const window = window_at_call(win, __builtin_return_address(0));
  if (window == nullptr) return host().Win_get_attr(win, keyval, value, found);
  void* attribute = nullptr;
  if (keyval == MPI_WIN_BASE) {
    attribute = window->base;
  } else if (keyval == MPI_WIN_SIZE) {
    attribute = &window->bytes;
  } else if (keyval == MPI_WIN_DISP_UNIT) {
    attribute = &window->disp_unit;
  } else if (keyval == MPI_WIN_CREATE_FLAVOR) {
    attribute = &window->flavor;
  } else if (keyval == MPI_WIN_MODEL) {
    attribute = &window->model;
  } else {
    return host().Win_get_attr(win, keyval, value, found);
  }
  *static_cast<void**>(value) = attribute;
  *found = 1;
  return MPI_SUCCESS;
}
