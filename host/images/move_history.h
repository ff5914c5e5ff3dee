// SPDX-License-Identifier: Apache-2.0
// Purpose: whether it pays to move pages to the image for a window (memory_image.h), where they
// move back with it: it does not for windows that live for a moment, one after the other, over
// large arrays.
//
//   if (!history.pays(pages)) return not_moved;
//   ... the window ends:
//   history.ended(pages, lived, moving);
//
// Invariants: MHI1 it does not pay where the last `most_short_lives` windows over some of the pages
//                  lived for less time than it takes to move them there and back. One that lives
//                  longer, though its pages did not move, is followed by one whose pages do.
//             MHI2 of ranges the last `most_ranges` are known.
// Thread safety: none of its own; OwnMemory uses it under its lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "host/memory/range_set.h"

namespace tombolo::host {

class MoveHistory {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr int most_short_lives = 2;
  static constexpr std::size_t most_ranges = 64;

  // A window over the pages has ended. `moving`: the time to move them there and back.
  void ended(const AddressRange& pages, Duration lived, Duration moving);

  bool pays(const AddressRange& pages) const;
  // As the last window over some of the pages had it; 0 if none is known.
  Duration moving(const AddressRange& pages) const;

 private:
  struct Past {
    AddressRange pages;
    Duration moving{};
    int short_lives = 0;  // one after the other
  };
  const Past* of(const AddressRange& pages) const;

  std::vector<Past> past_;  // the latest last; no two overlap
};

}  // namespace tombolo::host
