// SPDX-License-Identifier: Apache-2.0
#include "dsm/api/job.h"

#include "dsm/transport/mpi/load.h"
#include "runtime/processes/launcher.h"

namespace tombolo::dsm {

Status Job::join(TransportKind transport, std::unique_ptr<Job>& out) {
  auto job = std::make_unique<Job>();
  if (runtime::is_launched())
    TOMBOLO_TRY(runtime::join(job->sockets_));
  else if (transport == TransportKind::mpi)
    TOMBOLO_TRY(load_one_sided(job->mpi_));
  else
    job->sockets_ =
        std::make_unique<runtime::SocketExchange>(0, 1, runtime::SocketExchange::Ends());
  out = std::move(job);
  return {};
}

}  // namespace tombolo::dsm
