// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/processes/spawning.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Init(int* argc, char*** argv) {
  return initialize([&] { return TOMBOLO_HOST(Init)(argc, argv); });
}
