// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/stale.h"
#include "mpi/windows/engine_on.h"

namespace tombolo::mpi {

EnginePointer engine_on_stale(machine::Attachment attachment, const Particulars& particulars,
                              const windows::EngineOptions& options,
                              std::pmr::memory_resource& memory) {
  return engine_in<stale::Core>(
      memory,
      {std::move(attachment), particulars.own_memory, particulars.shared, particulars.evictions},
      options);
}

}  // namespace tombolo::mpi
