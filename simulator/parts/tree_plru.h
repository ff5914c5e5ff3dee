// SPDX-License-Identifier: Apache-2.0
// Purpose: pseudo-LRU replacement by a binary tree over the ways of a set: each inner node has one
// bit that points to the half that was used longer ago. For 4 ways these are the three bits of the
// i486 and the Pentium.
// Invariants: TP1 the way touched last is never the victim (with more than one way).
//             TP2 touching the victim of the moment again and again visits all ways in turn.
// Thread safety: a value.
#pragma once

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace tombolo::simulator {

class TreePlru {
 public:
  static constexpr std::uint32_t most_ways = 64;

  // Of all sets with `ways` ways. Bit n of a set's state belongs to node n; the root is node 1, the
  // children of n are 2n and 2n + 1, and a bit that is set points to the latter.
  explicit TreePlru(std::uint32_t ways) : levels_(std::countr_zero(ways)) {
    TOMBOLO_CHECK(std::has_single_bit(ways) && ways <= most_ways,
                  "pseudo-LRU over {} ways: a power of two up to {}", ways, most_ways);
  }

  std::uint64_t touched(std::uint64_t state, std::uint32_t way) const {
    std::uint32_t node = 1;
    for (int level = levels_ - 1; level >= 0; --level) {
      const std::uint32_t half = (way >> level) & 1;
      const std::uint64_t bit = std::uint64_t{1} << node;
      state = half == 0 ? state | bit : state & ~bit;
      node = 2 * node + half;
    }
    return state;
  }

  std::uint32_t victim(std::uint64_t state) const {
    std::uint32_t node = 1;
    for (int level = 0; level < levels_; ++level) {
      node = 2 * node + static_cast<std::uint32_t>((state >> node) & 1);
    }
    return node - (1u << levels_);
  }

 private:
  int levels_;
};

}  // namespace tombolo::simulator
