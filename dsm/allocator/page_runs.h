// SPDX-License-Identifier: Apache-2.0
// Purpose: renews the pages of many blocks, in ascending order, each page once.
// Thread safety: one thread.
#pragma once

#include "dsm/allocator/page_blocks.h"

namespace tombolo::dsm {

class PageRuns {
 public:
  PageRuns(PageBlocks& pages, std::size_t page_bytes) : pages_(pages), page_bytes_(page_bytes) {}

  void add(std::uint64_t offset, std::size_t bytes) {
    const std::uint64_t from = offset / page_bytes_ * page_bytes_;
    if (from < from_ || from > to_) {
      finish();
      from_ = from;
    }
    to_ = round_up(offset + bytes, page_bytes_);
  }
  // False if a renewal has failed, now or earlier.
  bool finish() {
    if (to_ > from_) ok_ = pages_.renew(from_, to_ - from_) && ok_;
    from_ = to_ = 0;
    return ok_;
  }

 private:
  PageBlocks& pages_;
  std::size_t page_bytes_;
  std::uint64_t from_ = 0;
  std::uint64_t to_ = 0;
  bool ok_ = true;
};

}  // namespace tombolo::dsm
