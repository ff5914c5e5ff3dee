// SPDX-License-Identifier: Apache-2.0
#include "backends/coherent/coherent.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

template <>
std::unique_ptr<windows::Engine> make_engine_on<coherent::Core>(
    const machine::Attachment& attachment, const windows::EngineOptions& options) {
  return std::make_unique<windows::Window<coherent::Core>>(attachment, options);
}

}  // namespace tombolo::mpi
