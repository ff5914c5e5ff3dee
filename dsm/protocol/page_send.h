// SPDX-License-Identifier: Apache-2.0
// Purpose: makes the changes of this thread known: a difference goes to the page's home, and a page
// that this thread keeps stays where it is and is exposed; and the beginning and the end of keeping
// a page.
//
// Invariants: DPS1 the home of a page with a keeper collects the differences of other threads, and
//                  those alone; it is the page again when the keeper gives its own part back. Both
//                  parts change under the page's mutex, or inside a barrier (DPF2).
//             DPS2 the version is raised when the change is where others get it (DPD1), and under
//                  the mutex: a thread that has that, and a copy of the page's version, lacks no
//                  change. The thread's own copy has the new version if it had the one before: else
//                  it lacks another thread's change, and keeps its old version, so that it is
//                  dropped in time.
//             DPS3 a kept page whose stores are announced to all has no copies that may stay: those
//                  that were got before have an older version, and a thread that gets one later
//                  gives notice. So the mark of its readers is cleared before the version is
//                  raised, under the mutex.
//             DPS4 outside of barriers a thread becomes the keeper of a page that it has stored to
//                  only in place, and under the mutex: if it has none, and this thread's copy has
//                  the page's version, so that it lacks no change (DPS2). Its older copies are
//                  those of threads that have yet to read the notice.
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

  // ---- Pages that this thread does not keep -----------------------------------------------------

  // `diff` is the difference of the cached page from its twin; `version` that of the change. Under
  // the mutex, so that no thread begins to keep the page without it.
  Status send(Page page, std::span<const std::byte> diff, std::uint64_t& version) {
    TOMBOLO_TRY(directory_.lock(page));
    auto keeper = directory_.keeper(page);
    const bool first = keeper && !keeper->mixed;
    TOMBOLO_TRY(first ? transport_.put(page, diff) : transport_.accumulate_xor(page, diff));
    // It is at the home before that is looked at, and before its version is raised (DPS2).
    TOMBOLO_TRY(transport_.complete());
    if (first) {
      keeper->mixed = true;
      directory_.set_keeper(page, *keeper);
    }
    version = raise(page);
    directory_.unlock(page);
    return {};
  }

  // ---- Pages that it keeps ----------------------------------------------------------------------

  // Whether this thread keeps the page. Another one may take it over, inside a barrier alone.
  bool keeps(Page page) {
    const auto keeper = directory_.keeper(page);
    return keeper && keeper->thread == transport_.core().self();
  }

  // Inside a barrier, where no other thread sends or fetches the page, or under its mutex
  // (try_keep()): the cached copy is all of it. The stores are announced next, by announce() or by
  // a new version under that mutex.
  void keep(Page page) {
    directory_.set_keeper(page, {.thread = transport_.core().self(), .slot = store_.slot(page)});
    PageNote& note = *store_.lookup(page);
    note.kept = true;
    note.shared = !store_.in_place();
  }

  // Outside of a barrier, a page in place that this thread has changed: if it may be (DPS4), this
  // thread keeps it from now on, and has announced its stores.
  Status try_keep(Page page, bool& kept) {
    TOMBOLO_TRY(directory_.lock(page));
    kept = !directory_.keeper(page) && directory_.version(page) == store_.lookup(page)->version;
    if (kept) {
      keep(page);
      raise(page);
    }
    directory_.unlock(page);
    return {};
  }

  // This thread has stored to the page the bytes that it had: so memory is cleared.
  Status mark_cleared(Page page) {
    TOMBOLO_TRY(directory_.lock(page));
    if (!directory_.keeper(page)) directory_.mark_cleared(page);
    directory_.unlock(page);
    return {};
  }
  bool cleared_by_another(Page page) { return directory_.cleared_by_another(page); }

  // The page has been stored to, and notice of that goes to all threads: no copy stays (DPS3).
  Status announce(Page page, std::uint64_t& version) {
    TOMBOLO_TRY(directory_.lock(page));
    if (store_.in_place()) {
      Keeper keeper = *directory_.keeper(page);
      keeper.shared = false;
      directory_.set_keeper(page, keeper);
      store_.lookup(page)->shared = false;
    }
    TOMBOLO_TRY(expose(page));
    version = raise(page);
    directory_.unlock(page);
    return {};
  }

  // Likewise, and notice goes to some threads alone: copies stay.
  Status announce_to_some(Page page, std::uint64_t& version) {
    TOMBOLO_TRY(directory_.lock(page));
    TOMBOLO_TRY(expose(page));
    version = raise(page);
    directory_.unlock(page);
    return {};
  }

  // Its part goes home, and no thread keeps the page.
  Status give_back(Page page) { return give_back(page, false); }
  // Likewise, of a page that has been stored to.
  Status give_back_changed(Page page) { return give_back(page, true); }

 private:
  Status give_back(Page page, bool changed) {
    TOMBOLO_TRY(directory_.lock(page));
    const auto keeper = directory_.keeper(page);
    TOMBOLO_TRY(keeper->mixed ? transport_.accumulate_xor(page, store_.frame(page))
                              : transport_.put(page, store_.frame(page)));
    // It is home before another thread finds no keeper (DPF2).
    TOMBOLO_TRY(transport_.complete());
    directory_.clear_keeper(page);
    if (changed) raise(page);
    directory_.unlock(page);
    store_.lookup(page)->kept = false;
    return {};
  }

  // The version of a change (DPS2).
  std::uint64_t raise(Page page) {
    const std::uint64_t version = directory_.raise_version(page);
    PageNote& note = *store_.lookup(page);
    if (note.version + 1 == version) note.version = version;
    return version;
  }

  // Under the mutex: no thread gets the exposed page meanwhile, which some transports forbid.
  Status expose(Page page) {
    if (store_.in_place()) return {};
    TOMBOLO_TRY(transport_.expose(store_.slot(page), store_.frame(page)));
    // It is there before its version is raised (DPS2).
    return transport_.complete();
  }

  T& transport_;
  S& store_;
  Directory& directory_;
};

}  // namespace tombolo::dsm
