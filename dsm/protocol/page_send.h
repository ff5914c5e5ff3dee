// SPDX-License-Identifier: Apache-2.0
// Purpose: brings the changes of this thread to a page's home: its difference from the twin, or all
// of it where the thread keeps the page.
//
// Invariants: DPS1 a kept page differs from its home by more than the difference from its twin: as
//                  long as the thread is its keeper, no other has changed the home, and the page is
//                  put there whole. Once a thread has collected it, the exposed page is at the
//                  home. The twin is equal to that, and the difference from it is sent, as that of
//                  any other page.
//             DPS2 the version is raised when the change is home (DPD1). The thread's own copy has
//                  the new version if it had the one before: else it lacks another thread's change,
//                  and keeps its old version, so that it is dropped in time.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/page_directory.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class PageSend {
 public:
  using Directory = PageDirectory<typename T::Core>;
  PageSend(T& transport, S& store, Directory& directory)
      : transport_(transport), store_(store), directory_(directory) {}

  // `diff` is the difference of the cached page from its twin. The page is no longer kept. To be
  // followed by raise(), but where the version has been raised for this change already.
  Status send(Page page, std::span<const std::byte> diff) {
    if (store_.lookup(page)->kept) return give_back(page, diff);
    TOMBOLO_TRY(transport_.accumulate_xor(page, diff));
    // It is at the home before its version is (DPS2).
    return transport_.complete();
  }

  // The version of the change.
  std::uint64_t raise(Page page) {
    const std::uint64_t version = directory_.raise_version(page);
    PageNote& note = *store_.lookup(page);
    if (note.version + 1 == version) note.version = version;
    return version;
  }

  // A kept page, with its difference from the twin; empty if there is none.
  Status give_back(Page page, std::span<const std::byte> diff) {
    TOMBOLO_TRY(directory_.lock(page));
    const bool keeper = keeps(page);
    if (keeper)
      TOMBOLO_TRY(transport_.put(page, store_.frame(page)));
    else if (!diff.empty())
      TOMBOLO_TRY(transport_.accumulate_xor(page, diff));
    // It is home before another thread finds no keeper (DPF2), and before its version is (DPS2).
    TOMBOLO_TRY(transport_.complete());
    if (keeper) directory_.clear_keeper(page);
    directory_.unlock(page);
    store_.lookup(page)->kept = false;
    return {};
  }

  // Whether the home of a page still waits for this thread. Another thread may end that at any
  // moment, but not begin it.
  bool keeps(Page page) {
    const auto keeper = directory_.keeper(page);
    return keeper && keeper->thread == transport_.core().self();
  }

 private:
  T& transport_;
  S& store_;
  Directory& directory_;
};

}  // namespace tombolo::dsm
