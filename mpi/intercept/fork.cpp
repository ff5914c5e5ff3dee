// SPDX-License-Identifier: Apache-2.0
// Not a call of MPI: pages of the caller's stack may be in memory that peers map, and the child
// gets its own copy of them before it comes back to that stack.
#include <dlfcn.h>
#include <unistd.h>

#include "host/memory/own_memory.h"
#include "mpi/intercept/intercept.h"

TOMBOLO_MPI_CALL pid_t fork() noexcept {
  // Looked for behind us in the load order, so it is the C library's or another tool's.
  static const auto next = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"));
  return tombolo::host::has_own_image() ? tombolo::host::forked_aside(next) : next();
}
