// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/host_progress.h"

#include "host/mpi/host.h"
#include "mpi/windows/generalized_request.h"

namespace tombolo::mpi {

HostProgress::~HostProgress() {
  if (pending_ == MPI_REQUEST_NULL) return;
  host().Grequest_complete(pending_);
  host().Wait(&pending_, MPI_STATUS_IGNORE);
}

Status HostProgress::open() {
  if (start_request(&pending_) == MPI_SUCCESS) return {};
  pending_ = MPI_REQUEST_NULL;
  return Status::io("the host MPI has no request left to drive its progress by");
}

Status HostProgress::idle() {
  int complete = 0;
  if (pending_ != MPI_REQUEST_NULL)
    host().Request_get_status(pending_, &complete, MPI_STATUS_IGNORE);
  return {};
}

}  // namespace tombolo::mpi
