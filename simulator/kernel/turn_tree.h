// SPDX-License-Identifier: Apache-2.0
// Purpose: finds the next core: a winner tree over entrants, each with a time, that keeps the
// earliest at the top. Changing one entrant's time plays the matches from it upwards.
// Invariants: TT1 of entrants with equal times the one with the smallest number wins.
// Thread safety: one thread at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/kernel/time.h"

namespace tombolo::simulator {

class TurnTree {
 public:
  struct Entry {
    Time time = Time::never();
    std::uint32_t entrant = 0;
    bool operator==(const Entry&) const = default;
  };

  explicit TurnTree(std::uint32_t entrants)
      : leaves_(std::bit_ceil(std::size_t{entrants} + 1)), nodes_(2 * leaves_) {
    for (std::uint32_t i = 0; i < leaves_; ++i) nodes_[leaves_ + i].entrant = i;
    for (std::size_t i = leaves_ - 1; i > 0; --i) nodes_[i] = nodes_[2 * i];
  }

  // For so many; those that it has keep their times.
  void grow(std::uint32_t entrants) {
    if (entrants < leaves_) return;
    TurnTree larger(entrants);
    for (std::uint32_t i = 0; i < leaves_; ++i) larger.set(i, time_of(i));
    *this = std::move(larger);
  }

  const Entry& first() const { return nodes_[1]; }
  Time time_of(std::uint32_t entrant) const { return nodes_[leaves_ + entrant].time; }

  void set(std::uint32_t entrant, Time time) {
    std::size_t node = leaves_ + entrant;
    nodes_[node].time = time;
    while (node > 1) {
      const Entry& left = nodes_[node & ~std::size_t{1}];
      const Entry& right = nodes_[node | 1];
      const Entry winner = right.time < left.time ? right : left;
      node /= 2;
      if (nodes_[node] == winner) return;
      nodes_[node] = winner;
    }
  }

 private:
  std::size_t leaves_;
  std::vector<Entry> nodes_;
};

}  // namespace tombolo::simulator
