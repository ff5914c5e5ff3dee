// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine that was chosen at run time: its properties, and engines of windows on it.
// The machines themselves are listed in backends/machines.h.
// Thread safety: stateless.
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>

#include "base/status.h"
#include "machine/optional.h"
#include "machine/place.h"
#include "runtime/engines/machine_id.h"
#include "windows/engine.h"

namespace tombolo::runtime {

// An engine in memory that its owner gives back as a whole: only the destructor runs.
struct DestroyInPlace {
  void operator()(windows::Engine* engine) const { std::destroy_at(engine); }
};
using EnginePointer = std::unique_ptr<windows::Engine, DestroyInPlace>;

// Facts that some machines need besides; each takes those that concern it (machine/optional.h).
struct Particulars {
  std::byte* own_view = nullptr;                     // KeepsViewsApart
  std::byte* shared = nullptr;                       // WantsSharedMemory
  std::uint64_t evictions = 0;                       // EvictsAtRandom
  std::pmr::vector<machine::RegionPart> parts = {};  // MapsParts
};

// Properties that follow from the types of one machine with one kind of atomics.
struct Traits {
  bool coherent = false;           // the program's loads and stores reach memory itself
  bool keeps_views_apart = false;  // the program's view of a region is not its memory
  bool maps_parts = false;         // regions may be mapped in part
  bool names_sites = false;        // the machine is told where calls come from
  bool tells_losses = false;       // the machine sees when bytes are lost
  bool takes_pools = false;        // memory may come from a pool
  bool serves_threads = true;      // several threads of a process may use it at once
};

// One machine with one kind of atomics.
class ServedMachine {
 public:
  virtual ~ServedMachine() = default;
  virtual Traits traits() const = 0;
  // Ok if this host can be the machine.
  virtual Status available() const = 0;
  // Bytes of sync memory that each of `cores` processes needs in a window.
  virtual std::size_t sync_bytes(machine::Home cores) const = 0;
  // Bytes that all share beside the regions.
  virtual std::size_t shared_bytes(std::span<const machine::DataRegion> regions) const = 0;
  // An engine in `memory`, which outlives it and takes nothing back.
  virtual EnginePointer engine(machine::Attachment attachment, Particulars particulars,
                               const windows::EngineOptions& options,
                               std::pmr::memory_resource& memory) const = 0;
};

struct MachineChoice {
  MachineId id{};
  bool native_atomics = true;  // false: atomics built from loads and stores, where it has those
};

const ServedMachine& served(MachineChoice machine);

}  // namespace tombolo::runtime
