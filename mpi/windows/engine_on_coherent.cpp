// SPDX-License-Identifier: Apache-2.0
#include "backends/coherent/coherent.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

EnginePointer engine_on_coherent(const machine::Attachment& attachment,
                                 const windows::EngineOptions& options) {
  return std::make_unique<windows::Window<coherent::Core>>(attachment, options);
}

}  // namespace tombolo::mpi
