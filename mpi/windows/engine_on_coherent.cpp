// SPDX-License-Identifier: Apache-2.0
#include "backends/coherent/coherent.h"
#include "mpi/windows/engine_on.h"

namespace tombolo::mpi {

EnginePointer engine_on_coherent(machine::Attachment attachment, Particulars particulars,
                                 const windows::EngineOptions& options,
                                 std::pmr::memory_resource& memory) {
  return engine_in<coherent::Core>(memory, {std::move(attachment), std::move(particulars.parts)},
                                   options);
}

}  // namespace tombolo::mpi
