// SPDX-License-Identifier: Apache-2.0
// Purpose: the lines that a core used lately, from which evictions are chosen: evicting lines in
// use shows more than evicting others.
// Thread safety: none of its own; stale::Core uses it under its lock.
#pragma once

#include <array>

#include "backends/stale/memory_bus.h"
#include "base/random.h"

namespace tombolo::stale {

class RecentLines {
 public:
  struct Place {
    SpanId span;
    Line line;
  };
  void add(SpanId span, Line line) {
    ring_[next_ % ring_.size()] = {span, line};
    ++next_;
  }
  bool empty() const { return next_ == 0; }
  Place pick(Random& random) const {
    return ring_[random.below(std::min<std::uint64_t>(next_, ring_.size()))];
  }

 private:
  std::array<Place, 32> ring_{};
  std::uint64_t next_ = 0;
};

}  // namespace tombolo::stale
