// SPDX-License-Identifier: Apache-2.0
#include "mpi/datatypes/type_info.h"
#include "mpi/intercept/intercept.h"
#include "mpi/processes/members.h"
#include "mpi/windows/findings.h"

using namespace tombolo::mpi;

TOMBOLO_MPI_CALL int MPI_Finalize() {
  tell_all_findings();
  job().report_complaints();
  job().print_stats();
  release_type_info();
  Team::end_all();
  forget_members();
  return host().Finalize();
}
