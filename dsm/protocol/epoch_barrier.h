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
// Per thread: four atomics and two loads for each changed page, a load for each page that others
// have changed and this thread has cached; two waits. A page that is left to its keeper, and that
// no other thread has got since, takes no part: nothing is done for it.
//
// Invariants: DEB1 between the waits no thread fetches a page: a page may go from one keeper to
//                  another then, and at no other time. Before the first wait others still run:
//                  versions are not raised there, since a page that was fetched then would pass
//                  for one that has the change. Notice is given after the versions are raised: a
//                  thread that is told too early would find its copy new enough.
//             DEB2 a thread becomes the keeper of a page only if its copy has all earlier changes,
//                  and no other has signed it. An earlier keeper has nothing to add: it has signed
//                  the page, or has stored nothing to it since this thread got it (DNR1).
//             DEB3 differently from 003, a reader does not interrupt the keeper: it gets the
//                  exposed page (docs/decisions/0019, 0025).
//             DEB4 of the threads that sign a page, each finds the signature of another there: the
//                  first one after the wait, the others at once.
// Thread safety: one thread for each object.
#pragma once

#include <type_traits>

#include "dsm/protocol/page_send.h"
#include "dsm/protocol/write_notices.h"
#include "sync/barriers/butterfly_barrier.h"
#include "sync/barriers/dissemination_barrier.h"

namespace tombolo::dsm {

// A core some of whose peers are on other hosts, those of one host numbered one after the other.
template <class C>
concept SpansHosts = C::spans_hosts;

template <Transport T, PageStore S>
class EpochBarrier {
 public:
  using Core = typename T::Core;
  using Directory = PageDirectory<Core>;
  // Fewer messages between hosts (docs/decisions/0031).
  using Waits = std::conditional_t<SpansHosts<Core>, sync::ButterflyBarrier<Core>,
                                   sync::DisseminationBarrier<Core>>;
  using Layout = typename Waits::Layout;
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return Waits::take(layout, shape.threads);
  }

  EpochBarrier(T& transport, S& store, Directory& directory, PageSend<T, S>& sender, Layout layout)
      : store_(store),
        directory_(directory),
        sender_(sender),
        barrier_(transport.core(), layout, transport.shape().threads) {}

  // `noticed`: pages that were sent before and are not in the notices yet; it is empty afterwards.
  // `rest(page)` decides about a page that this thread has changed and keeps. `drop_old()` reads
  // the notices and drops pages that are older than their version.
  template <class Rest, class DropOld>
  Status wait(WriteNotices<Core>& notices, std::vector<Page>& noticed, Rest&& rest,
              DropOld&& drop_old) {
    ++number_;
    changed_.clear();
    for (const Page page : store_.written()) sign(page);
    TOMBOLO_TRY(wait_for_all());
    for (const Changed& changed : changed_) TOMBOLO_TRY(settle(changed, rest, noticed));
    TOMBOLO_TRY(notices.append(noticed));
    noticed.clear();
    TOMBOLO_TRY(wait_for_all());
    return drop_old();
  }

  Status wait_for_all() { return barrier_.arrive_and_wait(); }

 private:
  struct Changed {
    Page page;
    bool first;    // to sign it
    bool differs;  // as far as is known
  };

  // A kept page without a twin counts as changed. In place, a page that was stored to with the same
  // contents is worth keeping, too: there may be such stores again.
  void sign(Page page) {
    const PageNote& note = *store_.lookup(page);
    const bool differs = !note.twin || difference(store_.frame(page), store_.twin(page), diff_);
    if (differs || (note.met && store_.in_place()))
      changed_.push_back(
          {.page = page, .first = directory_.sign(page, number_), .differs = differs});
    else
      store_.forbid_writes(page);
  }

  template <class Rest>
  Status settle(const Changed& changed, Rest& rest, std::vector<Page>& noticed) {
    const Page page = changed.page;
    const PageNote& note = *store_.lookup(page);
    const bool alone = changed.first && directory_.signed_last(page, number_);
    if (alone && directory_.version(page) == note.version) {
      if (!note.kept) sender_.keep(page);
      noticed.push_back(page);
      std::uint64_t version = 0;
      TOMBOLO_TRY(sender_.announce(page, version));
      rest(page);
      return {};
    }
    if (!changed.differs) {
      store_.forbid_writes(page);
      return {};
    }
    TOMBOLO_TRY(note.kept ? sender_.give_back_changed(page) : send_difference(page));
    noticed.push_back(page);
    // It lacks the changes of the others.
    store_.invalidate(page);
    return {};
  }

  Status send_difference(Page page) {
    difference(store_.frame(page), store_.twin(page), diff_);
    std::uint64_t version = 0;
    return sender_.send(page, diff_, version);
  }

  S& store_;
  Directory& directory_;
  PageSend<T, S>& sender_;
  Waits barrier_;
  std::uint64_t number_ = 0;
  std::vector<Changed> changed_;
  PageBytes diff_;
};

}  // namespace tombolo::dsm
