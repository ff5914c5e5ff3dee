// SPDX-License-Identifier: Apache-2.0
#include "backends/coherent/coherent.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

EnginePointer engine_on_coherent(machine::Attachment attachment,
                                 const windows::EngineOptions& options,
                                 std::pmr::memory_resource& memory) {
  return engine_in<windows::Window<coherent::Core>>(memory, std::move(attachment), options);
}

}  // namespace tombolo::mpi
