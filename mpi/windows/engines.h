// SPDX-License-Identifier: Apache-2.0
// Purpose: with engine_on*, the only place of the MPI binding that names the machines: makes the
// engine of a window on the machine chosen at run time. Thread safety: stateless.
#pragma once

#include <memory>
#include <memory_resource>
#include <span>

#include "backends/coherent/attachment.h"
#include "mpi/runtime/options.h"
#include "windows/engine.h"

namespace tombolo::mpi {

struct MachineChoice {
  MachineKind kind = MachineKind::coherent;
  bool native_atomics = true;
};

// Bytes of sync memory that each of `cores` processes needs in a window.
std::size_t sync_bytes(MachineChoice machine, machine::Home cores);

// Bytes that the processes of a window share beside these regions (machine::WantsSharedMemory).
std::size_t shared_bytes(MachineChoice machine, std::span<const machine::DataRegion> regions);

// True if the program's loads and stores reach memory itself (the unified memory model).
bool is_coherent(MachineChoice machine);
// True if the program's view of a region is apart from memory (machine::KeepsViewsApart).
bool keeps_views_apart(MachineChoice machine);
// True if the machine wants to know where a call comes from (machine::NamesSites).
bool names_sites(MachineChoice machine);

// Ok if this host can be the machine.
Status available(MachineChoice machine);

// An engine in memory that somebody else gives back: only its destructor runs.
struct DestroyInPlace {
  void operator()(windows::Engine* engine) const { std::destroy_at(engine); }
};
using EnginePointer = std::unique_ptr<windows::Engine, DestroyInPlace>;

// What is known of a window beyond what every machine is given; each takes what it has a use for.
struct Particulars {
  std::byte* own_memory = nullptr;  // the program's, if the window is over it
  std::byte* shared = nullptr;      // shared_bytes() of zeros, of all processes; may be null
  std::uint64_t evictions = 0;
  std::pmr::vector<coherent::Part> parts;  // by home, or empty
};

// An engine in `memory`, which outlives it and takes nothing back.
EnginePointer make_engine(MachineChoice machine, machine::Attachment attachment,
                          Particulars particulars, const windows::EngineOptions& options,
                          std::pmr::memory_resource& memory);

}  // namespace tombolo::mpi
