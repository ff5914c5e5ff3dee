// SPDX-License-Identifier: Apache-2.0
// Purpose: MPI's communication calls on a window of ours: arguments checked, datatypes taken apart,
// pieces handed to the engine. Each returns an MPI error code, after the window's error handler
// ran. Thread safety: that of the window's engine.
#pragma once

#include "mpi/windows/mpi_window.h"

namespace tombolo::mpi {

// One side of a communication call.
struct Buffer {
  const void* address;
  MPI_Count count;
  MPI_Datatype type;
};
// The other side; the displacement is in units of the target.
struct Remote {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};

[[gnu::hot]] int put(MpiWindow& window, const Buffer& origin, const Remote& target,
                     const char* call);
[[gnu::hot]] int get(MpiWindow& window, const Buffer& origin, const Remote& target,
                     const char* call);
int accumulate(MpiWindow& window, const Buffer& origin, const Remote& target, MPI_Op op,
               const char* call);
int get_accumulate(MpiWindow& window, const Buffer& origin, const Buffer& result,
                   const Remote& target, MPI_Op op, const char* call);
int fetch_and_op(MpiWindow& window, const void* origin, void* result, MPI_Datatype type, int rank,
                 MPI_Aint displacement, MPI_Op op);
int compare_and_swap(MpiWindow& window, const void* origin, const void* compare, void* result,
                     MPI_Datatype type, int rank, MPI_Aint displacement);

// A request that is complete, for the request-based calls: they are done when they return.
int completed_request(MPI_Request* request);

// The window ranks of a group's members; null with an MPI error class in `error` if one is not in
// the window. Valid until the next call for this window.
const std::vector<machine::Home>* window_ranks(MpiWindow& window, MPI_Group group, int& error);

// To be called when a group is freed: its handle may come to mean another one.
void forget_groups();

}  // namespace tombolo::mpi
