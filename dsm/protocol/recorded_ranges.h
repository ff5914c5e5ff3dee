// SPDX-License-Identifier: Apache-2.0
// Purpose: the bytes that a thread has recorded as stored in its spans (003 section 5.6), page by
// page, each byte once: loops record the same bytes again and again.
//
// Invariants: DRR1 no byte is there that was not added: it would travel with a lock, and overwrite
//                  another thread's newer one.
//             DRR2 a byte that was added may be missing, where there are too many ranges: its page
//                  travels by its name then.
// Memory: 24 bytes for each range, `most` at most.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

struct RecordedRange {
  Page page = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;

  std::size_t end() const { return offset + bytes; }
  // Whether the two leave no gap between them.
  bool meets(const RecordedRange& other) const {
    return page == other.page && other.offset <= end() && offset <= other.end();
  }
  void join(const RecordedRange& other) {
    const std::size_t last = std::max(end(), other.end());
    offset = std::min(offset, other.offset);
    bytes = last - offset;
  }
};

class RecordedRanges {
 public:
  static constexpr std::size_t most = 4096;

  void add(const RecordedRange& range) {
    if (range.bytes == 0) return;
    if (!ranges_.empty() && ranges_.back().meets(range)) return ranges_.back().join(range);
    if (ranges_.size() < most) ranges_.push_back(range);
  }

  // In ascending order, with gaps between them.
  std::vector<RecordedRange> of(Page page) const {
    std::vector<RecordedRange> found;
    std::ranges::copy_if(ranges_, std::back_inserter(found),
                         [=](const RecordedRange& range) { return range.page == page; });
    std::ranges::sort(found, {}, &RecordedRange::offset);
    std::vector<RecordedRange> joined;
    for (const RecordedRange& range : found) {
      if (!joined.empty() && joined.back().meets(range))
        joined.back().join(range);
      else
        joined.push_back(range);
    }
    return joined;
  }

  void forget(Page page) {
    std::erase_if(ranges_, [=](const RecordedRange& range) { return range.page == page; });
  }
  void clear() { ranges_.clear(); }

 private:
  std::vector<RecordedRange> ranges_;  // in the order in which they were added
};

}  // namespace tombolo::dsm
