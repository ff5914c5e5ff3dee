// SPDX-License-Identifier: Apache-2.0
// Purpose: makes the engine of a window on the machine with cores C. Each machine's is instantiated
// in a file of its own, so that the code of one machine lies together. Thread safety: stateless.
#pragma once

#include <memory>

#include "windows/engine.h"

namespace tombolo::mpi {

template <class C>
std::unique_ptr<windows::Engine> make_engine_on(const machine::Attachment& attachment,
                                                const windows::EngineOptions& options);

}  // namespace tombolo::mpi
