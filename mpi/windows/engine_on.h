// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: makes the engine of a window on each machine. Each has a file of
// its own, so that the code of one machine lies together. Thread safety: stateless.
#pragma once

#include <memory_resource>
#include <utility>

#include "mpi/windows/engines.h"
#include "windows/window.h"

namespace tombolo::mpi {

EnginePointer engine_on_coherent(machine::Attachment attachment, Particulars particulars,
                                 const windows::EngineOptions& options,
                                 std::pmr::memory_resource& memory);
EnginePointer engine_on_flushed(bool native_atomics, machine::Attachment attachment,
                                const windows::EngineOptions& options,
                                std::pmr::memory_resource& memory);
EnginePointer engine_on_stale(machine::Attachment attachment, const Particulars& particulars,
                              const windows::EngineOptions& options,
                              std::pmr::memory_resource& memory);

template <class C>
EnginePointer engine_in(std::pmr::memory_resource& memory, machine::AttachmentOf<C> attachment,
                        const windows::EngineOptions& options) {
  return EnginePointer(std::pmr::polymorphic_allocator<>(&memory).new_object<windows::Window<C>>(
      std::move(attachment), options));
}

}  // namespace tombolo::mpi
