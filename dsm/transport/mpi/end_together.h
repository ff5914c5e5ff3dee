// SPDX-License-Identifier: Apache-2.0
// Purpose: the end of a job that is refused at its start. A launcher kills the others once one
// process has left without the host MPI's end, and a host MPI that is killed leaves its memory in
// /dev/shm behind.
// Thread safety: one thread.
#pragma once

#include <cstdlib>

#include "dsm/transport/mpi/one_sided.h"

namespace tombolo::dsm {

// By all processes of the job, after the cause was told. The first one fails for all.
[[noreturn]] inline void end_together(OneSided& job) {
  const bool first = job.rank() == 0;
  job.finish();
  // Not _exit(): MPICH tells its launcher in a handler that the process ends as it should.
  std::exit(first ? EXIT_FAILURE : EXIT_SUCCESS);
}

}  // namespace tombolo::dsm
