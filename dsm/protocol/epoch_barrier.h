// SPDX-License-Identifier: Apache-2.0
// Purpose: the barrier of regional consistency, with epochs (003 section 5.5): a page that one
// thread alone has changed since the last barrier stays in its cache and is not sent; a page that
// several have changed goes home as differences, and all of them drop it.
//
//   1  each thread signs each page that it has changed
//      -- all wait --
//   2  a page that bears one signature is kept: its content is exposed to others. The other pages
//      go home, and are dropped. Then their versions are raised, and notice is given.
//      -- all wait --
//   3  noticed pages that are older than their version are dropped
//
// Per thread: two atomics and two loads for each changed page, a load for each page that others
// have changed and this thread has cached; two waits.
//
// Invariants: DEB1 between the waits no thread fetches a page: a keeper may change its exposed page
//                  and the keeper words then, and at no other time. Before the first wait others
//                  still run: versions are not raised there, since a page that was fetched then
//                  would pass for one that has the change. Notice is given after the versions are
//                  raised: a thread that is told too early would find its copy new enough.
//             DEB2 a thread keeps a page only if its copy has all changes at the home, and no other
//                  has signed it. So no copy but its own has changes that the home lacks.
//             DEB3 differently from 003, a reader does not interrupt the keeper: it gets the
//                  exposed page, which no one changes until the next barrier (docs/decisions/0019).
//             DEB4 of the threads that sign a page, each finds the signature of another there: the
//                  first one after the wait, the others at once.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/protocol/page_send.h"
#include "dsm/protocol/write_notices.h"
#include "sync/barriers/dissemination_barrier.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class EpochBarrier {
 public:
  using Core = typename T::Core;
  using Directory = PageDirectory<Core>;
  using Layout = typename sync::DisseminationBarrier<Core>::Layout;
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return sync::DisseminationBarrier<Core>::take(layout, shape.threads);
  }

  EpochBarrier(T& transport, S& store, Directory& directory, PageSend<T, S>& sender, Layout layout)
      : transport_(transport),
        store_(store),
        directory_(directory),
        sender_(sender),
        barrier_(transport.core(), layout, transport.shape().threads) {}

  // `noticed`: pages that were sent before and are not in the notices yet; it is empty afterwards.
  // `drop_old()` reads the notices and drops pages that are older than their version.
  template <class DropOld>
  Status wait(WriteNotices<Core>& notices, std::vector<Page>& noticed, DropOld&& drop_old) {
    ++number_;
    changed_.clear();
    for (const Page page : store_.written()) sign(page);
    TOMBOLO_TRY(wait_for_all());
    for (const Changed& changed : changed_) {
      TOMBOLO_TRY(settle(changed));
      noticed.push_back(changed.page);
    }
    TOMBOLO_TRY(notices.append(noticed));
    noticed.clear();
    TOMBOLO_TRY(wait_for_all());
    return drop_old();
  }

  Status wait_for_all() { return barrier_.arrive_and_wait(); }

 private:
  struct Changed {
    Page page;
    bool first;  // to sign it
  };

  void sign(Page page) {
    if (difference(store_.frame(page), store_.twin(page), diff_))
      changed_.push_back({.page = page, .first = directory_.sign(page, number_)});
    else
      store_.forbid_writes(page);
  }

  Status settle(const Changed& changed) {
    const Page page = changed.page;
    const bool alone = changed.first && directory_.signed_last(page, number_);
    if (alone && directory_.version(page) == store_.lookup(page)->version) {
      TOMBOLO_TRY(keep(page));
      sender_.raise(page);
      return {};
    }
    difference(store_.frame(page), store_.twin(page), diff_);
    TOMBOLO_TRY(sender_.send(page, diff_));
    sender_.raise(page);
    // It lacks the changes of the others.
    store_.invalidate(page);
    return {};
  }

  Status keep(Page page) {
    TOMBOLO_TRY(transport_.expose(store_.slot(page), store_.frame(page)));
    // It is there before any thread looks for it: after the second wait.
    TOMBOLO_TRY(transport_.complete());
    directory_.set_keeper(page, {.thread = transport_.core().self(), .slot = store_.slot(page)});
    store_.lookup(page)->kept = true;
    // The next store makes a twin, which is equal to the exposed page.
    store_.forbid_writes(page);
    return {};
  }

  T& transport_;
  S& store_;
  Directory& directory_;
  PageSend<T, S>& sender_;
  sync::DisseminationBarrier<Core> barrier_;
  std::uint64_t number_ = 0;
  std::vector<Changed> changed_;
  PageBytes diff_;
};

}  // namespace tombolo::dsm
