// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages to bring besides one that a thread has missed: those that follow it, once
// misses follow each other; twice as many each time, as the kernel does for files.
//
// Invariants: DRA1 no more than a quarter of the cache is brought at once: the page that was missed
//                  stays.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>

#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

class ReadAhead {
 public:
  explicit ReadAhead(const Shape& shape)
      : most_(std::min(shape.read_ahead, shape.cached_pages / 4)),
        pages_(shape.pages),
        expected_(shape.pages) {}

  // After a miss of `page`: the pages behind it, up to the one that is returned, may be needed
  // next.
  Page end_after(Page page) {
    ahead_ = page == expected_ ? std::min(std::max<Page>(2 * ahead_, 1), most_) : 0;
    expected_ = std::min(page + 1 + ahead_, pages_);
    return expected_;
  }

 private:
  Page most_;
  Page pages_;
  Page expected_;  // the next to be missed, if the thread goes on in order
  Page ahead_ = 0;
};

}  // namespace tombolo::dsm
