// SPDX-License-Identifier: Apache-2.0
// Purpose: finds the host MPI whose launcher has started this process, and loads it with the module
// of ours that speaks its handles (runtime/host_mpi/module.h). Programs of tombolo/dsm.h are linked
// to no MPI.
// Thread safety: one thread, once.
#pragma once

#include <memory>

#include "base/status.h"
#include "dsm/transport/mpi/one_sided.h"

namespace tombolo::dsm {

// MPI is initialized when it returns ok. Errors: unsupported (no MPI, none of several threads, no
// module for it), bad_configuration (TOMBOLO_DSM_MPI names no MPI).
Status load_one_sided(std::unique_ptr<OneSided>& out);

}  // namespace tombolo::dsm
