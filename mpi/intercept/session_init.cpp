// SPDX-License-Identifier: Apache-2.0
#include "mpi/intercept/intercept.h"
#include "mpi/processes/members.h"

using namespace tombolo::mpi;

#if TOMBOLO_HAVE_SESSIONS
TOMBOLO_MPI_CALL int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  need_host();
  announce_process(true);
  return TOMBOLO_HOST(Session_init)(info, handler, session);
}
#endif
