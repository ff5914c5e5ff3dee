// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/windows/findings.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Abort(MPI_Comm comm, int code) {
  tell_all_findings();
  return TOMBOLO_HOST(Abort)(comm, code);
}
