// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: makes the engine of a window on each machine. Each has a file of
// its own, so that the code of one machine lies together. Thread safety: stateless.
#pragma once

#include <memory>

#include "windows/engine.h"

namespace tombolo::mpi {

using EnginePointer = std::unique_ptr<windows::Engine>;

EnginePointer engine_on_coherent(const machine::Attachment& attachment,
                                 const windows::EngineOptions& options);
EnginePointer engine_on_flushed(bool native_atomics, const machine::Attachment& attachment,
                                const windows::EngineOptions& options);
EnginePointer engine_on_stale(const machine::Attachment& attachment,
                              const windows::EngineOptions& options);

}  // namespace tombolo::mpi
