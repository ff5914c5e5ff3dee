// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/stale.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

EnginePointer engine_on_stale(machine::Attachment attachment, const windows::EngineOptions& options,
                              std::pmr::memory_resource& memory) {
  return engine_in<windows::Window<stale::Core>>(memory, std::move(attachment), options);
}

}  // namespace tombolo::mpi
