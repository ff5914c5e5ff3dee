// SPDX-License-Identifier: Apache-2.0
// Purpose: with engine_on*, the only place of the MPI binding that names the machines: makes the
// engine of a window on the machine chosen at run time. Thread safety: stateless.
#pragma once

#include <memory>
#include <memory_resource>
#include <vector>

#include "mpi/runtime/options.h"
#include "windows/engine.h"

namespace tombolo::mpi {

struct MachineChoice {
  MachineKind kind = MachineKind::coherent;
  bool native_atomics = true;
};

// Bytes of sync memory that each of `cores` processes needs in a window.
std::size_t sync_bytes(MachineChoice machine, machine::Home cores);

// Bytes of ledger (machine::Attachment::ledger) for regions of these sizes; 0 if it uses none.
std::size_t ledger_bytes(MachineChoice machine, const std::vector<machine::DataRegion>& regions);

// True if the program's loads and stores reach memory itself (the unified memory model).
bool is_coherent(MachineChoice machine);
// True if a core keeps the program's view of a region apart from memory (DataRegion::image).
bool needs_images(MachineChoice machine);

// Ok if this host can be the machine.
Status available(MachineChoice machine);

// An engine in memory that somebody else gives back: only its destructor runs.
struct DestroyInPlace {
  void operator()(windows::Engine* engine) const { std::destroy_at(engine); }
};
using EnginePointer = std::unique_ptr<windows::Engine, DestroyInPlace>;

// An engine in `memory`, which outlives it and takes nothing back.
EnginePointer make_engine(MachineChoice machine, machine::Attachment attachment,
                          const windows::EngineOptions& options, std::pmr::memory_resource& memory);

}  // namespace tombolo::mpi
