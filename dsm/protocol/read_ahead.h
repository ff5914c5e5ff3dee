// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages to bring besides one that a thread has missed. Misses that follow each other
// at one distance are a stream; it is brought the next pages of it, twice as many each time, as the
// kernel does for files. Several streams may take turns.
//
// Invariants: DRA1 no more than a quarter of the cache is brought at once: the page that was missed
//                  stays.
//             DRA2 a stream of neighbours is known by its second miss, one of another distance by
//                  its third.
//             DRA3 no page that the program may not access is brought: nor does it become readable.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

// `count` pages: first, first + step, ...
struct PageRun {
  Page first = 0;
  std::int64_t step = 1;
  Page count = 0;

  Page operator[](Page i) const { return first + static_cast<Page>(step) * i; }
  // Whether it is one of the first `n`.
  bool has(Page page, Page n) const {
    const auto distance = static_cast<std::int64_t>(page - first);
    return distance % step == 0 && distance / step >= 0 &&
           static_cast<Page>(distance / step) < std::min(n, count);
  }
};

class ReadAhead {
 public:
  explicit ReadAhead(const Shape& shape)
      : most_(shape.tuning.read_ahead ? std::min(shape.read_ahead, shape.cached_pages / 4) : 0),
        pages_(shape.pages) {}

  // No run from now on has this page, or goes on behind it.
  void stop_at(Page page) { stops_.insert(std::ranges::upper_bound(stops_, page), page); }

  // After a miss of `page`: the pages that may be needed next. `passed`: those that were brought
  // for the miss before, if the stream has come past all of them.
  PageRun after(Page page, PageRun& passed) {
    const auto found = expecting(page);
    passed = {};
    if (found != streams_.end())
      passed = {.first = found->last + static_cast<Page>(found->step),
                .step = found->step,
                .count = found->ahead};
    return after(page);
  }
  PageRun after(Page page) {
    const auto found = expecting(page);
    Stream& stream = found == streams_.end() ? begun(page) : *found;
    if (found != streams_.end())
      stream.ahead = std::min(std::max<Page>(2 * stream.ahead, 1), most_);
    stream.last = page;
    stream.used = ++clock_;
    const Page left = stream.step > 0 ? (pages_ - 1 - page) / static_cast<Page>(stream.step)
                                      : page / static_cast<Page>(-stream.step);
    PageRun run{.first = page + static_cast<Page>(stream.step), .step = stream.step};
    const Page most = std::min(stream.ahead, left);
    while (run.count < most &&
           !std::ranges::binary_search(stops_, run.first + run.count * static_cast<Page>(run.step)))
      ++run.count;
    stream.ahead = run.count;
    return run;
  }

 private:
  struct Stream {
    Page last = 0;  // to be missed
    std::int64_t step = 1;
    Page ahead = 0;          // pages that were brought besides it; 0: it may be no stream
    std::uint64_t used = 0;  // when; 0: never
    Page next() const { return last + static_cast<Page>(step) * (1 + ahead); }
  };
  static constexpr std::int64_t farthest = 1024;  // pages, from one miss of a stream to the next
  using Streams = std::array<Stream, 4>;

  Streams::iterator expecting(Page page) {
    return std::ranges::find_if(streams_, [page](const Stream& stream) {
      return stream.used != 0 && stream.next() == page;
    });
  }

  // The stream that a page belongs to which none expects: one that had brought it; the nearest one
  // that is not known yet, at another distance; or a new one.
  Stream& begun(Page page) {
    Stream* nearest = nullptr;
    for (Stream& stream : streams_) {
      if (stream.used == 0) continue;
      const PageRun brought{.first = stream.last, .step = stream.step, .count = stream.ahead + 1};
      if (brought.has(page, brought.count)) {
        stream.ahead = 0;
        return stream;
      }
      const std::int64_t distance = from(stream, page);
      if (stream.ahead == 0 && std::abs(distance) <= farthest &&
          (nearest == nullptr || std::abs(distance) < std::abs(from(*nearest, page))))
        nearest = &stream;
    }
    if (nearest != nullptr) {
      nearest->step = from(*nearest, page);
      return *nearest;
    }
    return *std::ranges::min_element(streams_, {}, &Stream::used) = Stream();
  }
  static std::int64_t from(const Stream& stream, Page page) {
    return static_cast<std::int64_t>(page - stream.last);
  }

  Page most_;
  Page pages_;
  Streams streams_;
  std::uint64_t clock_ = 0;
  std::vector<Page> stops_;  // in order
};

}  // namespace tombolo::dsm
