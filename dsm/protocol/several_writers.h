// SPDX-License-Identifier: Apache-2.0
// Purpose: the base of the protocols whose pages have homes, and several writers each, by twins and
// differences: regional.h and release.h. A thread's stores go home before it takes a lock, at the
// end of a span and at the barrier; a thread that comes later drops, or patches, its older copies.
//
// A protocol derives from SeveralWriters<itself, T, S>, and has:
//
//   keeps_streams             whether the pages of a stream of stores are kept from the start on
//   pages_are_patched         whether notices hold changes (DPF5)
//   times_open                begins and ends of spans for which a page stays writable
//   take_notices()            the layout of its write notices
//   needs_twin_of_kept()      a page that this thread keeps is opened for stores
//   stays_open(note, differs) a page that was sent may stay writable
//   send_stores()             all stores since the last call go home, with the notices of them
//   note_sent(page, version)  a change outside of spans is home
//   flush_in_span(page)       sends the change of a page in a span
//   catch_up(lock)            the lock is taken: copies that are older than it allows are no more
//   drop_old()                likewise, by the notices alone
//
// Invariants: DSW1 rule 1: the stores of a thread outside of spans are home, and notice is given,
//                  before it takes a lock; a thread that takes any lock after that reads the notice
//                  and drops its older copies.
//             DSW2 an update is applied to a page that has the version before it, passed over on a
//                  page that has its version or a later one (which may hold newer bytes), and drops
//                  an older page.
//             DSW3 rule 3: at a barrier notice is given of all changed pages, those of spans too
//                  (epoch_barrier.h).
//             DSW4 a page is among written() only if a store to it may have happened since the last
//                  begin or end of a span, or barrier. A page that this thread does not keep has a
//                  twin then, and bytes that differ from it were stored since. A kept page without
//                  one may have changed anywhere.
//             DSW5 a page that this thread caches and does not keep equals the page that other
//                  threads get, but for changes of threads that it has not heard of.
//             DSW6 a page is left to the program only if this thread keeps it in place, and owes
//                  no other a notice (DPS3): a thread that gets it later sees its stores, and is
//                  found by the next look at the notices of readers (DNR1), before a lock is taken
//                  or given back, and at the barrier.
//             DSW7 a thread that has changed a page outside of spans twice, and no other has in
//                  between, keeps it from then on, in place (DPS4, docs/decisions/0049): a page
//                  that one thread alone stores to is sent twice at most, and so is its stack. A
//                  page that another thread has cleared, and none has changed, it keeps at once.
//             DSW8 the mechanisms of tuning.h change how a page comes to a thread, and never
//                  whether a store is seen.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <utility>

#include "dsm/protocol/consistency.h"
#include "dsm/protocol/epoch_barrier.h"
#include "dsm/protocol/page_changes.h"
#include "dsm/protocol/page_fetch.h"
#include "dsm/protocol/read_ahead.h"
#include "dsm/protocol/reader_notices.h"
#include "dsm/protocol/reduction.h"
#include "dsm/protocol/span_updates.h"

namespace tombolo::dsm {

template <class Self, Transport T, PageStore S>
class SeveralWriters {
 public:
  using Core = typename T::Core;
  static constexpr bool polls = false;

  struct Layout {
    typename PageDirectory<Core>::Layout directory;
    typename WriteNotices<Core>::Layout notices;
    typename ReaderNotices<Core>::Layout readers;
    typename SpanUpdates<T>::Layout updates;
    typename EpochBarrier<T, S>::Layout barrier;
    typename Reduction<Core>::Layout reduction;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.directory = PageDirectory<Core>::take(layout, shape),
            .notices = Self::take_notices(layout, shape),
            .readers = ReaderNotices<Core>::take(layout, shape),
            .updates = SpanUpdates<T>::take(layout, shape),
            .barrier = EpochBarrier<T, S>::take(layout, shape),
            .reduction = Reduction<Core>::take(layout, shape)};
  }

  // ---- Accesses ---------------------------------------------------------------------------------

  // The program may not access the page: no miss of another brings it, too.
  void bring_no_more(Page page) {
    ahead_.stop_at(page);
    stores_ahead_.stop_at(page);
  }

  Status read_miss(Page page) {
    shape_.check(page);
    return bring(page, ahead_.after(page), false);
  }

  Status write_miss(Page page) {
    shape_.check(page);
    if (held_.empty()) {
      PageRun passed;
      const PageRun run = stores_ahead_.after(page, passed);
      for (Page i = 0; i < passed.count; ++i) note_met(passed[i]);
      TOMBOLO_TRY(bring(page, run, true));
      open(page);
      note_met(page);
      for (Page i = 0; i < run.count; ++i)
        if (store_.lookup(run[i]) != nullptr) open(run[i]);
      return {};
    }
    // In a span, pages that are not stored to would be looked at for nothing at its end.
    if (store_.lookup(page) == nullptr) TOMBOLO_TRY(read_miss(page));
    open(page);
    note_met(page);
    return {};
  }

  Status evict(Page page) {
    // Its readers are told before it is theirs alone.
    if (left_to_program(page) && readers_.has_reader(directory_, page)) reclaim(page);
    if (store_.writable(page) && !left_to_program(page))
      TOMBOLO_TRY(held_.empty() ? flush(page) : self().flush_in_span(page));
    if (store_.lookup(page)->kept) TOMBOLO_TRY(sender_.give_back(page));
    store_.invalidate(page);
    return {};
  }

  Status poll() { return {}; }

  // ---- Synchronization --------------------------------------------------------------------------

  Status begin_span(Lock lock) {
    shape_.check_lock(lock);
    TOMBOLO_CHECK(!holds(lock), "begin_span: this thread holds lock {} already", lock);
    TOMBOLO_TRY(self().send_stores());
    TOMBOLO_TRY(updates_.acquire(lock));
    return enter(lock);
  }

  Status try_begin_span(Lock lock, bool& taken) {
    shape_.check_lock(lock);
    taken = false;
    // A thread that asks again and again for a lock that is not free sends nothing.
    if (holds(lock) || updates_.held(lock)) return {};
    TOMBOLO_TRY(self().send_stores());
    taken = updates_.try_acquire(lock);
    return taken ? enter(lock) : Status();
  }

  Status end_span(Lock lock) {
    TOMBOLO_CHECK(holds(lock), "end_span: this thread does not hold lock {}", lock);
    TOMBOLO_TRY(self().send_stores());
    const auto span = std::ranges::find(held_, lock, &Span::lock);
    TOMBOLO_TRY(updates_.append(lock, span->updates));
    updates_.release(lock);
    held_.erase(span);
    return {};
  }

  Status barrier() {
    TOMBOLO_CHECK(held_.empty(), "barrier: this thread holds {} locks", held_.size());
    TOMBOLO_TRY(find_readers());
    changed_.insert(changed_.end(), changed_in_spans_.begin(), changed_in_spans_.end());
    changed_in_spans_.clear();
    return barrier_.wait(
        notices_, changed_, [this](Page page) { settle_kept(page); },
        [this] { return self().drop_old(); });
  }

  // Stores since tell(), of a handler of a signal, are not lost with an old page.
  Status learn() {
    if (!store_.written().empty()) TOMBOLO_TRY(self().send_stores());
    return self().drop_old();
  }

  template <class V, class Combine>
  Status reduce(V& value, Combine&& combine) {
    return reduction_.reduce(value, combine, [this] { return barrier_.wait_for_all(); });
  }

  Status close() {
    TOMBOLO_CHECK(held_.empty(), "close: this thread holds {} locks", held_.size());
    for (const Page page : store_.cached()) TOMBOLO_TRY(evict(page));
    return barrier_.wait_for_all();
  }

 protected:
  struct Span {
    Lock lock;
    std::vector<Update> updates;
  };

  SeveralWriters(T& transport, S& store, const Layout& layout)
      : shape_(transport.shape()),
        store_(store),
        directory_(transport.core(), layout.directory, shape_),
        readers_(transport.core(), layout.readers, shape_),
        fetcher_(transport, store, directory_, readers_, Self::pages_are_patched),
        sender_(transport, store, directory_),
        notices_(transport.core(), layout.notices, shape_),
        updates_(transport, layout.updates),
        barrier_(transport, store, directory_, sender_, layout.barrier),
        reduction_(transport.core(), layout.reduction, shape_),
        ahead_(shape_),
        stores_ahead_(shape_) {}

  const Tuning& tuning() const { return shape_.tuning; }

  void check_record(Page page, std::size_t offset, std::size_t bytes) const {
    shape_.check(page);
    TOMBOLO_CHECK(offset + bytes <= shape_.page_bytes,
                  "record: {} bytes at offset {} are more than page {} has", bytes, offset, page);
  }

  // ---- Changes that are sent --------------------------------------------------------------------

  // Before a span begins (DSW1).
  Status end_region() {
    TOMBOLO_TRY(find_readers());
    for (const Page page : written()) TOMBOLO_TRY(flush(page));
    TOMBOLO_TRY(notices_.append(changed_));
    changed_.clear();
    return {};
  }

  // The stores since the last begin or end of a span belong to all locks that are held.
  Status end_part() {
    TOMBOLO_TRY(find_readers());
    for (const Page page : written()) TOMBOLO_TRY(self().flush_in_span(page));
    return {};
  }

  // Notice of the changes in spans, which are at their homes, to all threads.
  Status tell_of_spans() {
    TOMBOLO_TRY(notices_.append(changed_in_spans_));
    changed_in_spans_.clear();
    return {};
  }

  // A change in a span: `updates` are all of it, or none if it goes by its page's name alone.
  void put_into_logs(Page page, std::uint64_t version, std::vector<Update> updates) {
    if (updates.empty()) updates.push_back({.page = page, .version = version});
    for (Span& span : held_)
      span.updates.insert(span.updates.end(), updates.begin(), updates.end());
    changed_in_spans_.push_back(page);
  }

  // A kept page; notice of it is to be given to all.
  Status announce(Page page, std::vector<Page>& noticed) {
    std::uint64_t version = 0;
    TOMBOLO_TRY(sender_.announce(page, version));
    noticed.push_back(page);
    settle_kept(page);
    return {};
  }

  // A page that is stored to in one span is likely to be in the next: it stays writable, with a
  // twin that is equal to it, for some begins and ends of spans, if there are few such pages. To
  // look for differences is cheaper then than to meet the store.
  void settle_sent(Page page, bool differs) {
    PageNote& note = *store_.lookup(page);
    if (note.open != 0) --note.open;
    if (tuning().open_pages && few_ && self().stays_open(note, differs))
      note.open = Self::times_open;
    if (note.kept) note.open = 0;
    if (note.open == 0) {
      store_.forbid_writes(page);
      return;
    }
    note.met = false;
    if (differs) store_.make_twin(page);
  }

  // ---- Changes that come with a lock, or a notice -----------------------------------------------

  // The changes that were made under the lock before (DSW2). `lost`: some are no more in its log.
  Status apply_updates(Lock lock, bool& lost) {
    Update last;
    applied_ = false;
    return updates_.read(
        lock,
        [&](const Update& update) {
          const Status applied = apply(update, last);
          last = update;
          return applied;
        },
        lost);
  }

  void patch(const Update& update, PageNote& note) {
    put_into(store_.frame(update.page), update);
    // A difference from the twin would be taken for a store of this thread.
    if (store_.writable(update.page)) put_into(store_.twin(update.page), update);
    note.version = update.version;
    note.alone = false;
  }

  Status drop_all_old() {
    for (const Page page : store_.cached()) TOMBOLO_TRY(drop_if_old(page));
    return {};
  }

  Status drop_if_old(Page page) {
    const PageNote* note = store_.lookup(page);
    return note != nullptr && note->version < directory_.version(page) ? drop(page) : Status();
  }

  const Shape& shape_;
  S& store_;
  PageDirectory<Core> directory_;
  ReaderNotices<Core> readers_;
  PageFetch<T, S> fetcher_;
  PageSend<T, S> sender_;
  WriteNotices<Core> notices_;
  SpanUpdates<T> updates_;
  EpochBarrier<T, S> barrier_;
  Reduction<Core> reduction_;
  ReadAhead ahead_;
  ReadAhead stores_ahead_;
  std::vector<Span> held_;              // in the order in which they began
  std::vector<Page> changed_;           // at home, and not in the notices yet
  std::vector<Page> changed_in_spans_;  // likewise; rule 3 is for these at the barrier
  PageBytes diff_;

 private:
  Self& self() { return static_cast<Self&>(*this); }

  // Opens the page for stores.
  void open(Page page) {
    if (store_.writable(page)) return;
    PageNote& note = *store_.lookup(page);
    note.met = false;
    grant(note);
    if (note.kept && !note.shared) return store_.leave_to_program(page);
    note.twin = !note.kept || self().needs_twin_of_kept();
    if (note.twin) store_.make_twin(page);
    store_.allow_writes(page);
  }

  void note_met(Page page) {
    if (PageNote* const note = store_.lookup(page); note != nullptr) note->met = true;
  }

  // A page that was missed, and those of a stream that follow it, neighbours together.
  Status bring(Page missed, const PageRun& run, bool for_stores) {
    absent_.clear();
    if (store_.lookup(missed) == nullptr) absent_.push_back(missed);
    for (Page i = 0; i < run.count; ++i)
      if (store_.lookup(run[i]) == nullptr) absent_.push_back(run[i]);
    TOMBOLO_TRY(make_room(missed, run));
    std::ranges::sort(absent_);
    // In place, a page that is kept costs neither a twin nor a difference on its way home. The
    // stores of a stream are of one thread, where the protocol says so.
    const bool stores_follow = for_stores && run.count != 0;
    for (std::size_t begin = 0, end = 0; begin < absent_.size(); begin = end) {
      const Page first = absent_[begin];
      for (end = begin + 1; end < absent_.size() && absent_[end] == first + (end - begin);) ++end;
      TOMBOLO_TRY(stores_follow && store_.in_place() && Self::keeps_streams
                      ? fetcher_.fetch_run_to_keep(first, end - begin)
                      : fetcher_.fetch_run(first, end - begin, stores_follow));
    }
    return {};
  }

  // Makes room for absent pages, unless they push out each other, or the page that was missed,
  // which is the first of them if it is absent.
  Status make_room(Page missed, const PageRun& run) {
    for (std::size_t n = 0; n < absent_.size(); ++n) {
      if (store_.room() > n) continue;
      const Page victim = store_.victim();
      const bool needed = n == 0 && absent_[0] == missed;
      if (!needed && (victim == missed || run.has(victim, run.count))) {
        absent_.resize(n);
        return {};
      }
      TOMBOLO_TRY(evict(victim));
    }
    return {};
  }

  // ---- Pages that this thread keeps -------------------------------------------------------------

  // A page has been stored to. Where that is soon after it was closed to stores, or before another
  // thread has got it, it is left to the program for twice as many notices as the last time. If the
  // program does not store to it, each of these costs its readers a copy that they get in vain.
  void grant(PageNote& note) {
    constexpr std::uint8_t most = 16;
    const bool unread = tuning().longer_leave && !note.shared;
    const bool soon = note.kept && note.granted != 0 && (unread || syncs_ - note.closed_at <= 1);
    note.granted = soon ? std::min<std::uint8_t>(2 * note.granted, most) : 1;
    note.left = note.granted;
  }

  bool left_to_program(Page page) {
    const PageNote& note = *store_.lookup(page);
    return note.kept && !note.shared && store_.writable(page);
  }

  // Stores to the page count from now on, those since the last notice included.
  void reclaim(Page page) {
    PageNote& note = *store_.lookup(page);
    const bool left = left_to_program(page);
    note.shared = true;
    if (!left) return;
    note.twin = false;
    store_.allow_writes(page);
  }

  // Pages that others have got since the last notice (DSW6).
  Status find_readers() {
    ++syncs_;
    if (!store_.in_place()) return {};
    bool lost = false;
    TOMBOLO_TRY(readers_.read([this](Page page) { note_reader(page); }, lost));
    if (lost)
      for (const Page page : store_.cached()) note_reader(page);
    return {};
  }
  void note_reader(Page page) {
    const PageNote* note = store_.lookup(page);
    if (note != nullptr && note->kept && !note->shared) reclaim(page);
  }

  // Its stores are announced to all.
  void settle_kept(Page page) {
    PageNote& note = *store_.lookup(page);
    if (!note.shared && note.left != 0) {
      --note.left;
      store_.leave_to_program(page);
    } else {
      note.closed_at = syncs_;
      store_.forbid_writes(page);
    }
  }

  // ---- Spans ------------------------------------------------------------------------------------

  bool holds(Lock lock) const { return std::ranges::find(held_, lock, &Span::lock) != held_.end(); }

  // The lock is taken.
  Status enter(Lock lock) {
    TOMBOLO_TRY(self().catch_up(lock));
    held_.push_back({.lock = lock, .updates = {}});
    return {};
  }

  // ---- Changes outside of spans -----------------------------------------------------------------

  std::vector<Page> written() {
    constexpr std::ptrdiff_t few = 4;
    std::vector<Page> pages = store_.written();
    few_ = std::ranges::count_if(pages, [this](Page page) { return counts(page); }) <= few;
    return pages;
  }
  // A kept page is not looked at for differences.
  bool counts(Page page) { return !tuning().more_open_pages || !store_.lookup(page)->kept; }

  Status flush(Page page) {
    if (store_.lookup(page)->kept) return announce(page, changed_);
    return send_or_keep(page);
  }

  // DSW7. A page that was stored to with its own contents is worth keeping, too: there may be such
  // stores again. One that a stream has opened ahead may have had no store at all.
  Status send_or_keep(Page page) {
    PageNote& note = *store_.lookup(page);
    const bool differs = difference(store_.frame(page), store_.twin(page), diff_);
    const bool stored = differs || note.met;
    bool kept = false;
    if (stored && store_.in_place() && is_its_own(page)) TOMBOLO_TRY(sender_.try_keep(page, kept));
    std::uint64_t version = note.version;
    if (differs && !kept) TOMBOLO_TRY(sender_.send(page, diff_, version));
    if (kept) {
      changed_.push_back(page);
      settle_kept(page);
      return {};
    }
    if (differs) self().note_sent(page, version);
    if (stored) note.alone = note.version == version;
    // The mark counts for pages that have never changed (is_its_own).
    const bool cleared = stored && !differs && note.version == 0;
    if (cleared && store_.in_place() && tuning().cleared_pages)
      TOMBOLO_TRY(sender_.mark_cleared(page));
    settle_sent(page, differs);
    return {};
  }

  // A page that this thread has stored to before, and no other since; or one that another has
  // cleared, and none has changed: programs clear memory in one thread, and use it in others.
  bool is_its_own(Page page) {
    const PageNote& note = *store_.lookup(page);
    if (note.alone && tuning().own_pages) return true;
    return tuning().cleared_pages && note.version == 0 && sender_.cleared_by_another(page);
  }

  // ---- Updates, and copies that are too old -----------------------------------------------------

  // `last`: the one before it in the log. Updates of one page and version are one change.
  Status apply(const Update& update, const Update& last) {
    PageNote* note = store_.lookup(update.page);
    const bool continues = applied_ && update.page == last.page && update.version == last.version;
    applied_ = false;
    if (note == nullptr || (note->version >= update.version && !continues)) return {};
    if (note->kept || update.bytes == 0 || note->version + 1 < update.version)
      return drop(update.page);
    applied_ = true;
    patch(update, *note);
    return {};
  }

  Status drop(Page page) {
    const bool kept = store_.lookup(page)->kept;
    if (kept && sender_.keeps(page)) return evict(page);
    // A page that another thread keeps now has no stores of this one (DEB2).
    TOMBOLO_CHECK(kept || !store_.writable(page) || store_.lookup(page)->open != 0,
                  "virtual shared memory: page {} is dropped with stores that are not home", page);
    store_.invalidate(page);
    return {};
  }

  std::vector<Page> absent_;  // that are being brought
  bool few_ = false;  // pages with a twin were written to in the part of a span that ended last
  std::uint32_t syncs_ = 0;  // looks for readers
  bool applied_ = false;     // the last update
};

}  // namespace tombolo::dsm
