// SPDX-License-Identifier: Apache-2.0
// Purpose: how long the next pause of a wait is, for a thread that looks again and again.
//
// An eighth of the time that the wait has lasted, drawn from the upper half of that: the look that
// finds the awaited thing is late by so much at most. A wait for a lock that is free for a
// microsecond at a time misses few of those. A wait that is no short one sleeps: for as long again
// as it has lasted.
//
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "machine/contract.h"

namespace tombolo::dsm {

class GrowingPause {
 public:
  explicit GrowingPause(machine::Home self) : random_(Random::stream(stream_of_waits, self)) {}

  std::uint64_t next_ns() {
    const std::uint64_t part = waited_ns_ / (waited_ns_ < short_wait_ns ? 8 : 1);
    const std::uint64_t ns = std::clamp(part, first_pause_ns, longest_pause_ns);
    const std::uint64_t drawn = ns - random_.below(ns / 2 + 1);
    waited_ns_ += drawn;
    return drawn;
  }
  // The wait is over.
  void reset() { waited_ns_ = 0; }

 private:
  static constexpr std::uint64_t stream_of_waits = 0x7761697473;
  static constexpr std::uint64_t first_pause_ns = 100;
  static constexpr std::uint64_t longest_pause_ns = 500'000;
  static constexpr std::uint64_t short_wait_ns = 100'000;

  Random random_;
  std::uint64_t waited_ns_ = 0;  // in the pauses of this wait
};

}  // namespace tombolo::dsm
