// SPDX-License-Identifier: Apache-2.0
// Purpose: the functions of the host MPI, as a table of pointers filled at run time. Our library is
// in front of programs that may not use MPI at all, so it must not be linked to one.
//
//   TOMBOLO_HOST(Win_create)(base, size, unit, info, comm, &win);   // stops if the host lacks it
//   if (host().Put_c != nullptr) ...                                // asks first
//
// Invariants: HM1 a member is null exactly where the running MPI does not define that PMPI_
//                 function; functions that the header does not declare have no member
//                 (functions.inc).
//             HM2 calls through the table reach PMPI_, so neither we nor another tool see them
//                 again.
// Thread safety: host() may be called from any thread.
#pragma once

#include "base/status.h"
#include "host/mpi/mpi_header.h"

namespace tombolo::mpi {

struct Host {
#define TOMBOLO_HOST_FUNCTION(function) decltype(&PMPI_##function) function = nullptr;
#include "host/mpi/functions.inc"
#undef TOMBOLO_HOST_FUNCTION
};

namespace detail {
extern const Host* host_table;
const Host& load_host();
[[noreturn]] void stop_without(const char* name);
}  // namespace detail

// The table, filled at the first call that finds an MPI loaded. Before that every member is null.
inline const Host& host() {
  const Host* table = __atomic_load_n(&detail::host_table, __ATOMIC_ACQUIRE);
  return table != nullptr ? *table : detail::load_host();
}

// `function`, or stops the process with a message that says which MPI function the host lacks.
template <typename Function>
Function require(Function function, const char* name) {
  if (function == nullptr) [[unlikely]]
    detail::stop_without(name);
  return function;
}

// Ok if the MPI of this process has the handle ABI this library was compiled for; else an error
// that names the MPI found and the library to preload instead. May be called before MPI_Init.
Status check_host();
// Stops the process with that error: handles of another kind would be mistaken, by us and then by
// the host.
void need_host();

}  // namespace tombolo::mpi

#define TOMBOLO_HOST(function) \
  (::tombolo::mpi::require(::tombolo::mpi::host().function, "MPI_" #function))
