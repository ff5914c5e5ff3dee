// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Group_free(MPI_Group* group) {
  forget_groups();
  return host().Group_free(group);
}
