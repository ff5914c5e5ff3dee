// SPDX-License-Identifier: Apache-2.0
// Not a call of MPI: pages of the caller's stack may be in memory that peers map, and the child
// gets its own copy of them before it comes back to that stack.
#include <dlfcn.h>
#include <unistd.h>

#include "host/images/own_memory.h"
#include "mpi/intercept/intercept.h"

namespace {

using Fork = pid_t (*)();

// Looked for behind us in the load order, so it is the C library's or another tool's.
Fork next_fork() { return reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "fork")); }

// Looked up while the library is loaded: the linker's lock may be held by a thread that waits for
// this one to fork, as the thread that loads a library whose constructor does.
const Fork found = next_fork();

}  // namespace

TOMBOLO_MPI_CALL pid_t fork() noexcept {
  // Null: a constructor of another library calls it before that.
  const Fork next = found != nullptr ? found : next_fork();
  return tombolo::host::has_own_image() ? tombolo::host::forked_aside(next) : next();
}
