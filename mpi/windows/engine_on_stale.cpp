// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/stale.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

template <>
std::unique_ptr<windows::Engine> make_engine_on<stale::Core>(
    const machine::Attachment& attachment, const windows::EngineOptions& options) {
  return std::make_unique<windows::Window<stale::Core>>(attachment, options);
}

}  // namespace tombolo::mpi
