// SPDX-License-Identifier: Apache-2.0
// Purpose: brings a page into the cache of this thread: from its home, or from the thread that
// keeps it.
//
// Without a keeper: two loads and a get. With one, two loads, the page's mutex and a get, and
// another get if the home has differences of other threads. The first reader since the keeper's
// last notice gives the keeper one.
//
// Invariants: DPF1 the page has all changes up to the version in its note: the version is loaded
//                  before the keeper is looked for, and that before the bytes are got (DPD1). It
//                  may have later ones, whose version is raised only then, and lack those of a
//                  thread that has begun to keep it since; the page is got once more then.
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
    for (bool got = false; !got;) TOMBOLO_TRY(get(page, version, got));
    store_.install(page, buffer_) = {.version = version};
    return {};
  }

  // Likewise, and if it has no keeper, this thread is that from now on: others may have copies.
  Status fetch_to_keep(Page page) {
    buffer_.resize(transport_.shape().page_bytes);
    TOMBOLO_TRY(directory_.lock(page));
    const std::uint64_t version = directory_.version(page);
    if (directory_.keeper(page)) {
      directory_.unlock(page);
      return fetch(page);
    }
    TOMBOLO_TRY(transport_.get(page, buffer_));
    store_.install(page, buffer_) = {.version = version, .kept = true, .shared = true};
    directory_.set_keeper(page, {.thread = transport_.core().self(), .slot = store_.slot(page)});
    directory_.unlock(page);
    return {};
  }

 private:
  // Not `got`: it has gone home from its keeper meanwhile.
  Status get(Page page, std::uint64_t& version, bool& got) {
    version = directory_.version(page);
    if (directory_.keeper(page)) return get_kept(page, version, got);
    got = true;
    return transport_.get(page, buffer_);
  }

  Status get_kept(Page page, std::uint64_t& version, bool& got) {
    TOMBOLO_TRY(directory_.lock(page));
    const auto keeper = directory_.keeper(page);
    got = keeper.has_value();
    if (got) TOMBOLO_TRY(get_from(*keeper, page, version));
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
