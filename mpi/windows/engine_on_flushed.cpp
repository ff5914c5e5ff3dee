// SPDX-License-Identifier: Apache-2.0
#include "backends/flushed/flushed.h"
#include "mpi/windows/engine_on.h"

namespace tombolo::mpi {

EnginePointer engine_on_flushed(bool native_atomics, machine::Attachment attachment,
                                const windows::EngineOptions& options,
                                std::pmr::memory_resource& memory) {
  using machine::Atomics;
  using WithAtomics = flushed::Core<Atomics::full>;
  using WithoutAtomics = flushed::Core<Atomics::none>;
  if (native_atomics) return engine_in<WithAtomics>(memory, std::move(attachment), options);
  return engine_in<WithoutAtomics>(memory, std::move(attachment), options);
}

}  // namespace tombolo::mpi
