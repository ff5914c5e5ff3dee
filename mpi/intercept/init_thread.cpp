// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/processes/spawning.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return initialize([&] { return TOMBOLO_HOST(Init_thread)(argc, argv, required, provided); });
}
