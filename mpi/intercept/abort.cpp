// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>

#include "host/processes/taken_output.h"
#include "mpi/intercept/intercept.h"
#include "mpi/windows/findings.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Abort(MPI_Comm comm, int code) {
  tell_all_findings();
  // The launcher would drop them with the job.
  tombolo::host::wait_until_taken(STDERR_FILENO, std::chrono::seconds(2));
  return TOMBOLO_HOST(Abort)(comm, code);
}
