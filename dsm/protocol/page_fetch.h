// SPDX-License-Identifier: Apache-2.0
// Purpose: brings a page into the cache of this thread: from its home, which is first brought up to
// date from the snapshot of the thread that keeps the page, if one does.
//
// Without a keeper: two loads and a get. With one, two atomics, two gets and a put more.
//
// Invariants: DPF1 the page has all changes up to the version in its note: the version is loaded
//                  before the bytes are got (DPD1). It may have later ones, whose version is raised
//                  only then; the page is got once more in vain.
//             DPF2 a keeper is cleared after its snapshot is at the home, under the page's mutex; a
//                  thread that finds no keeper gets a page that is up to date.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/page_directory.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class PageFetch {
 public:
  using Directory = PageDirectory<typename T::Core>;
  PageFetch(T& transport, S& store, Directory& directory)
      : transport_(transport), store_(store), directory_(directory) {}

  // Into a store that has room.
  Status fetch(Page page) {
    buffer_.resize(transport_.shape().page_bytes);
    if (directory_.keeper(page)) TOMBOLO_TRY(collect(page));
    const std::uint64_t version = directory_.version(page);
    TOMBOLO_TRY(transport_.get(page, buffer_));
    store_.install(page, buffer_) = {.version = version};
    return {};
  }

 private:
  Status collect(Page page) {
    TOMBOLO_TRY(directory_.lock(page));
    // Another thread may have collected it, or its keeper brought it home.
    if (const auto keeper = directory_.keeper(page)) {
      TOMBOLO_CHECK(keeper->thread != transport_.core().self(),
                    "virtual shared memory: thread {} keeps page {} and has not cached it",
                    keeper->thread, page);
      TOMBOLO_TRY(transport_.get_exposed(keeper->thread, keeper->slot, buffer_));
      TOMBOLO_TRY(transport_.put(page, buffer_));
      // The page is home before another thread finds no keeper (DPF2).
      TOMBOLO_TRY(transport_.complete());
      directory_.clear_keeper(page);
    }
    directory_.unlock(page);
    return {};
  }

  T& transport_;
  S& store_;
  Directory& directory_;
  PageBytes buffer_;
};

}  // namespace tombolo::dsm
