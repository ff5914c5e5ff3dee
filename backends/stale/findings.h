// SPDX-License-Identifier: Apache-2.0
// Purpose: the mistakes that the machine `stale` has seen: bytes that were lost, and the cores that
// lost them.
// A correct program on a correct algorithm has none.
//
// Invariants: FI1 the counts are exact; the details stop after `Findings::details_max`.
//             FI2 neighbouring lines lost in the same way by the same writers are one detail.
//             FI3 every finding is on the board, too.
// Thread safety: none of its own; stale::Core writes it under its lock. Read it when the core
// rests.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/stale/board.h"
#include "machine/losses.h"

namespace tombolo::stale {

using machine::Loss;
using machine::Writer;

struct Finding {
  Loss loss = Loss::lost_update;
  machine::Home home = 0;
  machine::Offset begin = 0;  // the first and one past the last lost byte
  machine::Offset end = 0;
  std::uint64_t bytes = 0;  // lost bytes between them
  bool evicted = false;     // lost_update: by a random eviction, not by a publish
  Writer culprit;           // the core whose operation lost the bytes, or misses them
  Writer victim;            // the core that wrote the bytes, where it is another
};

struct Tally {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

class Findings {
 public:
  static constexpr std::size_t details_max = 100;

  // On memory that all cores share for their board; null: none.
  explicit Findings(std::byte* shared) : board_(shared) {}

  const Tally& of(Loss loss) const { return tallies_[static_cast<std::size_t>(loss)]; }
  // The first details_max findings.
  const std::vector<Finding>& details() const { return details_; }
  // No update was lost, no write dropped, no promise broken. Bytes left unpublished at the end harm
  // only cores that look for them, so they do not count here.
  bool clean() const;

  // Findings that are added until the next call are of one operation.
  void next_operation() { ++operation_; }
  void add(const Finding& one_line);
  std::string report() const;  // one line per detail, with the counts; empty if there is nothing
  // Of all cores.
  Board& board() { return board_; }

 private:
  Board board_;
  std::uint64_t operation_ = 0;
  std::array<Tally, machine::kinds_of_losses> tallies_{};
  std::vector<Finding> details_;
};

// One sentence without a full stop.
std::string describe(const Finding& finding);

}  // namespace tombolo::stale
