// SPDX-License-Identifier: Apache-2.0
// Purpose: the names of memory that mean the same in every core, and the description of the memory
// that a core is given when it starts.
//
// Memory has a home: the core it is closest to. Each home has one block of sync words and one
// region of data. A place never holds a pointer: cores may map the same memory at different
// addresses.
//
// Invariants: PL1 every home has a sync block of the same size, so that the address of a peer's
//                 sync word is computed and no core stores n addresses for it (000 section 3.4.6).
//             PL2 the first `Core::reserved_sync_bytes(cores)` of a sync block belong to the
//                 machine.
//             PL3 sync blocks start on a 64-byte boundary and are zero before the first core
//                 starts.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "base/check.h"
#include "base/rounding.h"
#include "machine/waiting.h"

namespace tombolo::machine {

// A core's number, from 0; the home of memory is the number of the core it is closest to.
using Home = std::uint32_t;
// Bytes from the start of a sync block or data region.
using Offset = std::uint64_t;

// An 8-byte word for synchronization; no cache holds it. `offset` is a multiple of 8.
struct SyncPlace {
  Home home = 0;
  Offset offset = 0;
};

// A byte of the data region of `home`.
struct DataPlace {
  Home home = 0;
  Offset offset = 0;
  constexpr DataPlace operator+(Offset bytes) const { return {home, offset + bytes}; }
};

// Bytes of the data region of a home from offset `at` on, and the caller's memory that they are
// copied to or from.
struct DataPiece {
  Offset at = 0;
  std::byte* local = nullptr;  // only read by a write
  std::size_t bytes = 0;
};

// How this core reaches the data region of one home.
struct DataRegion {
  // Where the region's memory is mapped here; null if only the kernel's copy calls reach it.
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  // With memory == null: the process that has the region, and its address there.
  std::int32_t pid = 0;
  std::uint64_t foreign_address = 0;
};

// Of a region without a mapping: where `bytes` of it from offset `start` on are mapped after all.
struct RegionPart {
  std::byte* memory = nullptr;
  Offset start = 0;
  std::uint64_t bytes = 0;
};

// Given to every core when it starts. Everything pointed at outlives the core. A machine that needs
// more derives from it and names the type in its core: AttachmentOf in contract.h.
struct Attachment {
  Home self = 0;
  Home cores = 1;
  std::byte* sync = nullptr;  // the block of home h starts at sync + h * sync_bytes_per_home
  std::size_t sync_bytes_per_home = 0;
  std::pmr::vector<DataRegion> data;  // by home; a move keeps the memory it is in, a copy does not
  WaitPolicy waiting{};
  bool several_hosts = false;  // some cores are beyond this host's kernel
  IdleHook* idle = nullptr;    // may be null
  std::uint64_t seed = 1;      // for machines that make random choices
};

// Hands out offsets inside a sync block: every home uses the same layout.
class SyncLayout {
 public:
  explicit SyncLayout(std::size_t reserved_bytes) : next_(round_up(reserved_bytes, line)) {}

  // `words` consecutive words that share no 64-byte line with any other taken range.
  Offset take_lines(std::size_t words) {
    const Offset at = next_;
    next_ = round_up(next_ + words * 8, line);
    return at;
  }
  std::size_t bytes() const { return next_; }

 private:
  static constexpr std::size_t line = 64;
  std::size_t next_;
};

}  // namespace tombolo::machine
