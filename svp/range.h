// SPDX-License-Identifier: Apache-2.0
// Purpose: the indices of a family's threads (002 section 3.1: start, limit, step, block).
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <limits>

#include "base/check.h"

namespace tombolo::svp {

using Index = std::int64_t;

// A limit that is never reached: the family ends by break or kill.
inline constexpr Index unbounded = std::numeric_limits<Index>::max();

// Threads start, start + step, ... short of limit; counted down with a step below 0. None if the
// limit is behind the start.
struct Range {
  Index start = 0;
  Index limit = 1;
  Index step = 1;
  std::uint64_t block = 0;  // threads that may run at once; 0: as many as there are workers

  static constexpr std::uint64_t endless = ~std::uint64_t{0};

  constexpr std::uint64_t count() const {
    if (limit == unbounded) return endless;
    // In unsigned numbers, in which no difference overflows.
    const auto from = static_cast<std::uint64_t>(start);
    const auto to = static_cast<std::uint64_t>(limit);
    const auto by = static_cast<std::uint64_t>(step);
    if (step == 1) return limit > start ? to - from : 0;  // most are: without a division
    if (step > 0) return limit > start ? (to - from - 1) / by + 1 : 0;
    return limit < start ? (from - to - 1) / (0 - by) + 1 : 0;
  }
  constexpr Index index(std::uint64_t ordinal) const {
    return static_cast<Index>(static_cast<std::uint64_t>(start) +
                              ordinal * static_cast<std::uint64_t>(step));
  }
  void check() const {
    TOMBOLO_CHECK(step != 0, "create: a family from {} to {} with step 0", start, limit);
  }
};

}  // namespace tombolo::svp
