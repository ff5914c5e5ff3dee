// SPDX-License-Identifier: Apache-2.0
// Purpose: finds the host MPI whose launcher has started this process, and loads it with the module
// of ours that speaks its handles (runtime/host_mpi/module.h).
// Thread safety: one thread, once.
#pragma once

#include <memory>

#include "base/status.h"
#include "svp/links/mpi/host_messages.h"

namespace tombolo::svp {

// MPI is initialized when it returns ok. Errors: unsupported (no MPI, none that threads may call,
// no module for it), bad_configuration (TOMBOLO_SVP_MPI names no MPI; processes that srun has
// started do not find each other).
Status load_host_messages(std::unique_ptr<HostMessages>& out);

}  // namespace tombolo::svp
