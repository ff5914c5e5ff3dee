// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/generalized_request.h"

#include "host/mpi/host.h"

namespace tombolo::mpi {
namespace {

int query(void*, MPI_Status* status) {
  host().Status_set_elements(status, MPI_BYTE, 0);
  host().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

int start_request(MPI_Request* request) {
  return host().Grequest_start(query, release, cancel, nullptr, request);
}

int completed_request(MPI_Request* request) {
  const int error = start_request(request);
  return error != MPI_SUCCESS ? error : host().Grequest_complete(*request);
}

}  // namespace tombolo::mpi
