// SPDX-License-Identifier: Apache-2.0
#include "backends/flushed/flushed.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

namespace tombolo::mpi {

EnginePointer engine_on_flushed(bool native_atomics, const machine::Attachment& attachment,
                                const windows::EngineOptions& options) {
  using machine::Atomics;
  if (native_atomics)
    return std::make_unique<windows::Window<flushed::Core<Atomics::full>>>(attachment, options);
  return std::make_unique<windows::Window<flushed::Core<Atomics::none>>>(attachment, options);
}

}  // namespace tombolo::mpi
