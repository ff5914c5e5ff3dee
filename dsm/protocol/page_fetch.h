// SPDX-License-Identifier: Apache-2.0
// Purpose: brings a page into the cache of this thread: from its home, or from the thread that
// keeps it.
//
// Without a keeper: two loads and a get. With one, two loads, the page's mutex and a get, and
// another get if the home has differences of other threads. The first reader since the keeper's
// last notice gives the keeper one.
//
// Invariants: DPF1 the page has all changes up to the version in its note: the version is loaded
//                  before the bytes are got (DPD1). It may have later ones, whose version is raised
//                  only then; the page is got once more in vain.
//             DPF2 a kept page is got under its mutex: its parts are of one keeper, and no
//                  difference is in both or in none.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/page_directory.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/reader_notices.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class PageFetch {
 public:
  using Core = typename T::Core;
  PageFetch(T& transport, S& store, PageDirectory<Core>& directory, ReaderNotices<Core>& readers)
      : transport_(transport), store_(store), directory_(directory), readers_(readers) {}

  // Into a store that has room.
  Status fetch(Page page) {
    buffer_.resize(transport_.shape().page_bytes);
    std::uint64_t version = 0;
    bool kept = false;
    if (directory_.keeper(page)) TOMBOLO_TRY(get_kept(page, version, kept));
    if (!kept) {
      version = directory_.version(page);
      TOMBOLO_TRY(transport_.get(page, buffer_));
    }
    store_.install(page, buffer_) = {.version = version};
    return {};
  }

 private:
  // `kept`: it still has a keeper, from which it has come.
  Status get_kept(Page page, std::uint64_t& version, bool& kept) {
    TOMBOLO_TRY(directory_.lock(page));
    const auto keeper = directory_.keeper(page);
    kept = keeper.has_value();
    if (kept) TOMBOLO_TRY(get_from(*keeper, page, version));
    directory_.unlock(page);
    return {};
  }

  Status get_from(Keeper keeper, Page page, std::uint64_t& version) {
    TOMBOLO_CHECK(keeper.thread != transport_.core().self(),
                  "virtual shared memory: thread {} keeps page {} and has not cached it",
                  keeper.thread, page);
    if (store_.in_place() && !keeper.shared) {
      keeper.shared = true;
      directory_.set_keeper(page, keeper);
      TOMBOLO_TRY(readers_.give(keeper.thread, page));
    }
    version = directory_.version(page);
    TOMBOLO_TRY(transport_.get_exposed(keeper.thread, keeper.slot, buffer_));
    if (!keeper.mixed) return {};
    home_.resize(buffer_.size());
    TOMBOLO_TRY(transport_.get(page, home_));
    apply_difference(home_, buffer_);
    return {};
  }

  T& transport_;
  S& store_;
  PageDirectory<Core>& directory_;
  ReaderNotices<Core>& readers_;
  PageBytes buffer_;
  PageBytes home_;
};

}  // namespace tombolo::dsm
