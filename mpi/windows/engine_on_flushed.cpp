// SPDX-License-Identifier: Apache-2.0
#include "backends/flushed/flushed.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

template <>
std::unique_ptr<windows::Engine> make_engine_on<flushed::Core<machine::Atomics::full>>(
    const machine::Attachment& attachment, const windows::EngineOptions& options) {
  return std::make_unique<windows::Window<flushed::Core<machine::Atomics::full>>>(attachment,
                                                                                  options);
}

template <>
std::unique_ptr<windows::Engine> make_engine_on<flushed::Core<machine::Atomics::none>>(
    const machine::Attachment& attachment, const windows::EngineOptions& options) {
  return std::make_unique<windows::Window<flushed::Core<machine::Atomics::none>>>(attachment,
                                                                                  options);
}

}  // namespace tombolo::mpi
