// SPDX-License-Identifier: Apache-2.0
// Purpose: lets the host MPI make progress while a process waits for peers or polls a window: a
// peer may be unable to arrive before a message of ours does.
//
// The call that does so asks after a request that is never complete: MPI_Request_get_status drives
// the host, needs no communicator (programs of sessions alone have none that is always there), and
// may come from several threads at once. A look for messages on a communicator of one process
// drives Open MPI, but not MPICH.
// Invariants: HPR1 the request is made and given back inside MPI calls of the program.
// Thread safety: idle() from any thread that may call MPI.
#pragma once

#include "host/mpi/mpi_header.h"
#include "machine/waiting.h"

namespace tombolo::mpi {

class HostProgress final : public machine::IdleHook {
 public:
  HostProgress() = default;
  HostProgress(const HostProgress&) = delete;
  HostProgress& operator=(const HostProgress&) = delete;
  ~HostProgress() override;

  // Progress is made from then on.
  Status open();
  Status idle() override;

 private:
  MPI_Request pending_ = MPI_REQUEST_NULL;
};

}  // namespace tombolo::mpi
