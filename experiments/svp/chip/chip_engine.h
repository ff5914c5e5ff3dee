// SPDX-License-Identifier: Apache-2.0
// Purpose: copy cores (002 section 4.7, chapter 9) as the engine by which arrays of families travel
// from the memory of one core of the chip to that of another (CopiesByEngine of
// svp/links/link.h), while both cores do other work. A family's bytes are the host's; they pass
// through a *room*, memory of the core where the family runs, which is free again afterwards.
//
// Copy cores read and write memory, past the caches of both cores. The creator's array is published
// and refreshed by the creator (CST4 of chip_sites.h); the room is this core's:
//
//   refresh   before a copy into the room: a dirty line of an earlier family's would reach memory
//             over the bytes that come, and a clean one would hide them
//   publish   after the family's output was stored to the room: stores that hit a line stay in the
//             cache, where a copy core does not see them
//
// Invariants: CEN1 a room is nothing else's until the copy is over, whatever becomes of the family.
// Thread safety: as Cpu. Other fibres of the core may run meanwhile, and copy as well.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "experiments/svp/divided_copy.h"
#include "experiments/svp/heap.h"

namespace tombolo::experiments {

class ChipEngine {
 public:
  // Arrays of fewer bytes are not worth the flushes (002 chapter 9).
  static constexpr std::size_t least_bytes = 4096;
  // The operations for consistency; tests leave one out.
  struct Care {
    bool publish = true;
    bool refresh = true;
  };
  // Returns once ready() is true; other fibres have the core meanwhile. False: the run has been
  // ended.
  using Wait = std::function<bool(const std::function<bool()>& ready)>;

  // `room_bytes`: of the core's public pages, for all rooms at a time; their size at most.
  ChipEngine(scc::Cpu& cpu, std::vector<simulator::CoreId> copy_cores, std::uint64_t room_bytes,
             Care care, Wait wait);

  std::uint64_t bytes_in_use() const { return rooms_.bytes_used(); }
  bool takes(std::size_t bytes) const { return !copy_cores_.empty() && bytes >= least_bytes; }
  // no_memory: no room is free that is large enough. stopped: the run has been ended.
  Status get(const CoreMemory& from, void* to, std::size_t bytes);
  Status put(const CoreMemory& to, const void* from, std::size_t bytes);

 private:
  void flush();
  Status copy(const CoreMemory& from, const CoreMemory& to, std::size_t bytes);
  scc::View view(simulator::Address room) const { return {room, scc::MemoryType::dcm}; }

  scc::Cpu& cpu_;
  std::vector<simulator::CoreId> copy_cores_;
  Care care_;
  Wait wait_;
  Heap rooms_;
};

}  // namespace tombolo::experiments
