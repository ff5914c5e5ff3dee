// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/stale.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

EnginePointer engine_on_stale(const machine::Attachment& attachment,
                              const windows::EngineOptions& options) {
  return std::make_unique<windows::Window<stale::Core>>(attachment, options);
}

}  // namespace tombolo::mpi
