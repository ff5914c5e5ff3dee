// SPDX-License-Identifier: Apache-2.0
// Purpose: the private part of one explored core: a store buffer for sync words, copies of lines,
// and a combining buffer for write-throughs.
//
// A clean line is not copied. The core may see any version of it from `floor` on: the version that
// it last saw, or the one in memory at its last refresh. A read of version v stands for all the
// ways to get there: a copy that stayed, one that was dropped and fetched again, one that was
// fetched ahead. So neither evictions of clean lines nor prefetches need transitions of their own.
//
// Invariants: PV1 floors only grow: a line that was fetched again is no older than before (R1).
//             PV2 a dirty line is a copy of its own; all bytes that are not in `dirty` may be
//                 stale.
//             PV3 a core sees its own write-throughs, before and after they reach memory, unless it
//                 sees a version that is as new.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "litmus/explorer/memory.h"

namespace tombolo::litmus {

class PrivateMemory {
 public:
  struct Store {
    std::size_t word;
    std::uint64_t value;
    // The value that the core believes the word to hold until then, if it has looked at it.
    std::optional<std::uint64_t> believed = {};
  };
  // Bytes of one unit that were written through.
  struct Piece {
    std::uint32_t unit;
    LineMask mask;  // within the line
    LineBytes bytes;
    std::uint32_t settled;  // the version that has it, or `pending`
  };
  static constexpr std::uint32_t pending = ~std::uint32_t{0};

  explicit PrivateMemory(Memory& memory) : memory_(memory), copies_(memory.lines()) {}
  void clear();

  // Sync words -----------------------------------------------------------------------------------
  std::vector<Store>& stores() { return stores_; }
  const std::vector<Store>& stores() const { return stores_; }
  std::uint64_t visible(std::size_t word) const;
  // True if the word held something else than the core believed: another core has changed it.
  bool oldest_store_to_memory();

  // Data -----------------------------------------------------------------------------------------
  bool dirty(std::uint32_t line) const { return copies_[line].dirty != 0; }
  std::uint32_t floor(std::uint32_t line) const { return copies_[line].floor; }
  // The versions that differ for this core in the bytes of `mask`, each the oldest of its kind: a
  // core that sees an older one can do all that it could with a newer equal one.
  void versions(std::uint32_t line, LineMask mask, std::vector<std::uint32_t>& versions) const;
  // `version` counts for a clean line only.
  LineBytes read(std::uint32_t line, std::uint32_t version);
  void write(std::uint32_t line, std::uint32_t version, const LineBytes& bytes, LineMask mask);
  void write_through(std::uint32_t unit, const LineBytes& bytes, LineMask mask);
  void write_back(std::uint32_t line);
  // Bytes of `mask` that were written and not published are lost (contract: the caller's error).
  void refresh(std::uint32_t line, LineMask mask);

  const std::vector<Piece>& pieces() const { return pieces_; }
  bool is_pending(std::uint32_t unit) const;
  bool drained() const;
  void settle(std::uint32_t unit);

  std::uint64_t hash() const;

 private:
  struct Copy {
    std::uint32_t floor = 0;
    LineMask dirty = 0;
    LineBytes bytes{};  // of a dirty line
  };
  LineBytes seen(std::uint32_t line, std::uint32_t version) const;
  void raise_floor(std::uint32_t line, std::uint32_t version);

  Memory& memory_;
  std::vector<Store> stores_;
  std::vector<Copy> copies_;  // by line
  std::vector<Piece> pieces_;
};

}  // namespace tombolo::litmus
