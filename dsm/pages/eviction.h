// SPDX-License-Identifier: Apache-2.0
// Purpose: which page of a full cache is given up next.
//
// The cache does not see the accesses to pages that are open, so pages are given up in the order in
// which they came. A program that goes round and round through more memory than the cache holds
// would find none of it there. So a page that was given up, and comes again for a load, may stay:
// it returns. For each page that is given up, the oldest of those that return is closed, and rests:
// its next access shows that it is used, and costs a fault, but no transfer. One that is not used
// for as long as another page was away gives its place to that one.
//
// Invariants: DGU1 half of the cache returns at most. A page that comes again for a store, and soon
//                  enough that it would be there if none returned, takes four places from them;
//                  32 pages that are given up give one back.
//             DGU2 of the other pages the one that came first is given up: a readable one, if a
//                  quarter of all are readable, those that return included, and a sixteenth without
//                  those; else the one that has been writable for longest, pages that are left to
//                  the program last. So a thread that has written all of its cache can read a
//                  stream beside that.
//             DGU3 where no page is given up, none returns: neither a program whose memory fits
//                  nor pages that notices drop cost a fault more.
//             DGU4 no page is closed but where another is given up: all that an instruction needs
//                  are open in the end.
// Memory: 4 bytes for each page of the shape that was given up.
// Thread safety: one thread at a time. Nothing is allocated after create().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "dsm/pages/frame_table.h"
#include "dsm/protocol/shape.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

class Eviction {
 public:
  using Slot = FrameTable::Slot;

  // `capacity`: of cached pages. The table outlives it.
  Eviction(FrameTable& frames, Slot capacity, const Shape& shape)
      : frames_(frames),
        capacity_(capacity),
        most_together_(std::max<Slot>(shape.read_ahead, 1)),
        places_(most_places()) {}

  Status create(const Shape& shape);

  // The state of a page that comes into the cache now: readable, or returning.
  FrameState arrive(Frame& frame, bool for_store);

  // A page that rests is used. `open` gives it, and those that are likely to follow it, the state
  // `returning`: after the pages that were opened last come twice as many, in the order in which
  // they were used before.
  template <class Open>
  void wake(Frame& frame, Open&& open) {
    const bool goes_on = frames_.slot_of(frame) == next_;
    together_ = goes_on ? std::min(2 * together_, most_together_) : 1;
    Frame* each = &frame;
    for (Slot i = 0; i < together_ && each != nullptr; ++i) {
      Frame* const newer = frames_.newer(*each);
      each->since = now_;
      open(*each);
      each = newer;
    }
    next_ = each == nullptr ? no_slot : frames_.slot_of(*each);
  }

  // The page is given up for another one. The next one to rest; null if there is none.
  Frame* give_up(const Frame& frame);
  // The page goes for another reason: it will not return.
  void drop(const Frame& frame) { came()[frame.page] = 0; }

  // The one to give up: no page of `stay`, as long as there are others. Null if none is cached.
  const Frame* victim(std::span<const Page> stay) const;

 private:
  using Time = std::uint32_t;  // pages that were given up
  static constexpr Slot no_slot = ~Slot{0};
  static constexpr Slot parts = 32;  // of a place

  Time* came() { return came_.as<Time>(); }
  Slot most_places() const { return capacity_ / 2 * parts; }
  Slot staying() const {
    return frames_.count(FrameState::returning) + frames_.count(FrameState::resting);
  }
  bool has_place(Time away) const;
  std::array<FrameState, 5> order() const;

  FrameTable& frames_;
  const Slot capacity_;
  const Slot most_together_;
  Slot places_;            // for pages that return, in parts
  host::ZeroMemory came_;  // by page that was given up: when it came, or was seen to be used
  Time now_ = 1;
  Slot next_ = no_slot;  // behind those that were opened last
  Slot together_ = 1;    // that were opened last
};

}  // namespace tombolo::dsm
