// SPDX-License-Identifier: Apache-2.0
// Purpose: regional consistency (003 chapter 3) over pages with homes, several writers for each
// page, twins and differences. docs/model/threads.md says to the author of a program how it
// behaves.
//
//   stores                 travel
//   outside of spans       before the next span of this thread begins, or at the barrier: to the
//                          pages' homes, as differences; other threads drop their copies when
//                          a span of theirs begins, or at the barrier
//   in a span, recorded    when it ends, to the homes, and with the lock to its next holders
//   in a span, others      likewise, but the holders drop the page
//
// Where spans tell all (Shape), stores are alike, recorded or not, in spans and outside of them: a
// small change is in its notice, and patches the copies of all threads; a larger one of a span, or
// one that is sent as a lock is handed over, is with the lock for its next holders; other threads
// drop their copies.
//
// Invariants: DRG1 rule 1: the stores of a thread outside of spans are home, and notice is given,
//                  before it takes a lock; a thread that takes any lock after that reads the notice
//                  and drops its older copies.
//             DRG2 rule 2: the stores of a span are home and in the lock's log before the lock is
//                  free; the next holder reads the log. An update is applied to a page that has the
//                  version before it, passed over on a page that has its version or a later one
//                  (which may hold newer bytes), and drops an older page.
//             DRG3 rule 3: at a barrier notice is given of all changed pages, those of spans too
//                  (epoch_barrier.h).
//             DRG4 a page is among written() only if a store to it may have happened since the last
//                  begin or end of a span, or barrier. A page that this thread does not keep has a
//                  twin then, and bytes that differ from it were stored since; so has a kept one
//                  that was stored to in a span. A kept page without one may have changed anywhere.
//                  Where spans tell all (Shape), notice of a span's changes is given before its
//                  lock is free, as by rule 1: then all that is ordered by locks is in order, for
//                  programs that know of no regions (docs/decisions/0026). A change of a few bytes,
//                  of a span or not, is in its notice, and in no log: a page that has the version
//                  before it is patched, by each thread (docs/decisions/0059). A kept page has no
//                  twin in a span either: its stores are announced to all.
//             DRG5 a page that this thread caches and does not keep equals the page that other
//                  threads get, but for changes of threads that it has not heard of.
//             DRG6 a page is left to the program only if this thread keeps it in place, and owes
//                  no other a notice (DPS3): a thread that gets it later sees its stores, and is
//                  found by the next look at the notices of readers (DNR1), before a lock is taken
//                  or given back, and at the barrier.
//             DRG7 a thread that has changed a page outside of spans twice, and no other has in
//                  between, keeps it from then on, in place (DPS4, docs/decisions/0049): a page
//                  that one thread alone stores to is sent twice at most, and so is its stack. A
//                  page that another thread has cleared, and none has changed, it keeps at once.
//             DRG8 where spans tell all, a thread reads notices only when it has given notice of
//                  all its changes of pages that it caches: its notices patch its own page, too,
//                  where that lacks an earlier change of another thread, and the last one has the
//                  newest bytes. It has no stores then that are not home.
//             DRG9 where spans tell all, a lock that is handed over has changes in its log that
//                  were sent before it was taken: in another order than that of their versions, if
//                  another thread was faster. The page that lacks the version between is dropped
//                  (DRG2), and there is notice of all of them.
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
#include "dsm/protocol/recorded_ranges.h"
#include "dsm/protocol/reduction.h"
#include "dsm/protocol/span_updates.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class Regional {
 public:
  using Core = typename T::Core;
  static constexpr const char* name = "regional";
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
            .notices = shape.spans_tell_all ? WriteNotices<Core>::take_with_changes(layout, shape)
                                            : WriteNotices<Core>::take(layout, shape),
            .readers = ReaderNotices<Core>::take(layout, shape),
            .updates = SpanUpdates<T>::take(layout, shape),
            .barrier = EpochBarrier<T, S>::take(layout, shape),
            .reduction = Reduction<Core>::take(layout, shape)};
  }

  Regional(T& transport, S& store, const Layout& layout)
      : shape_(transport.shape()),
        store_(store),
        directory_(transport.core(), layout.directory, shape_),
        readers_(transport.core(), layout.readers, shape_),
        fetcher_(transport, store, directory_, readers_),
        sender_(transport, store, directory_),
        notices_(transport.core(), layout.notices, shape_),
        updates_(transport, layout.updates),
        barrier_(transport, store, directory_, sender_, layout.barrier),
        reduction_(transport.core(), layout.reduction, shape_),
        ahead_(shape_),
        stores_ahead_(shape_) {}

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

  void record(Page page, std::size_t offset, std::size_t bytes) {
    shape_.check(page);
    TOMBOLO_CHECK(offset + bytes <= shape_.page_bytes,
                  "record: {} bytes at offset {} are more than page {} has", bytes, offset, page);
    if (!held_.empty()) recorded_.add({.page = page, .offset = offset, .bytes = bytes});
  }

  Status evict(Page page) {
    // Its readers are told before it is theirs alone.
    if (left_to_program(page) && readers_.has_reader(directory_, page)) reclaim(page);
    if (store_.writable(page) && !left_to_program(page))
      TOMBOLO_TRY(held_.empty() ? flush(page) : flush_in_span(page));
    if (store_.lookup(page)->kept) TOMBOLO_TRY(sender_.give_back(page));
    store_.invalidate(page);
    return {};
  }

  Status poll() { return {}; }

  // ---- Synchronization --------------------------------------------------------------------------

  Status begin_span(Lock lock) {
    shape_.check_lock(lock);
    TOMBOLO_CHECK(!holds(lock), "begin_span: this thread holds lock {} already", lock);
    TOMBOLO_TRY(send_stores());
    TOMBOLO_TRY(updates_.acquire(lock));
    return enter(lock);
  }

  Status try_begin_span(Lock lock, bool& taken) {
    shape_.check_lock(lock);
    taken = false;
    // A thread that asks again and again for a lock that is not free sends nothing.
    if (holds(lock) || updates_.held(lock)) return {};
    TOMBOLO_TRY(send_stores());
    taken = updates_.try_acquire(lock);
    return taken ? enter(lock) : Status();
  }

  Status end_span(Lock lock) {
    TOMBOLO_CHECK(holds(lock), "end_span: this thread does not hold lock {}", lock);
    TOMBOLO_TRY(send_stores());
    const auto span = std::ranges::find(held_, lock, &Span::lock);
    TOMBOLO_TRY(updates_.append(lock, span->updates));
    updates_.release(lock);
    held_.erase(span);
    return {};
  }

  // A span with nothing in it, if the lock is free: `done`. Where spans tell all, small changes of
  // this thread that it sends go with the lock, as if the span had made them.
  Status try_hand_over(Lock lock, bool& done) {
    handing_over_ = true;
    Status begun = try_begin_span(lock, done);
    handing_over_ = false;
    if (!begun.ok() || !done) return begun;
    held_.back().updates = std::exchange(handed_over_, {});
    return end_span(lock);
  }

  Status barrier() {
    TOMBOLO_CHECK(held_.empty(), "barrier: this thread holds {} locks", held_.size());
    TOMBOLO_TRY(find_readers());
    changed_.insert(changed_.end(), changed_in_spans_.begin(), changed_in_spans_.end());
    changed_in_spans_.clear();
    TOMBOLO_TRY(append_told());
    return barrier_.wait(
        notices_, changed_, [this](Page page) { settle_kept(page); },
        [this] { return drop_old(); });
  }

  // Rule 3 for some of the threads: the pages that this one keeps stay, as before a span. In spans
  // where these tell all, which they do here, too.
  Status tell() {
    TOMBOLO_CHECK(held_.empty() || shape_.spans_tell_all, "tell: this thread holds {} locks",
                  held_.size());
    TOMBOLO_TRY(send_stores());
    return tell_all();
  }
  // Stores since tell(), of a handler of a signal, are not lost with an old page.
  Status learn() {
    if (!store_.written().empty()) TOMBOLO_TRY(send_stores());
    return drop_old();
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

 private:
  struct Span {
    Lock lock;
    std::vector<Update> updates;
  };

  // For stores.
  void open(Page page) {
    if (store_.writable(page)) return;
    PageNote& note = *store_.lookup(page);
    note.met = false;
    grant(note);
    if (note.kept && !note.shared) return store_.leave_to_program(page);
    note.twin = !note.kept || (!held_.empty() && !shape_.spans_tell_all);
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
    // stores of a stream are of one thread; but programs that know of no regions clear memory in
    // one thread that others then use: it would have to be given back first.
    const bool stores_follow = for_stores && run.count != 0;
    for (std::size_t begin = 0, end = 0; begin < absent_.size(); begin = end) {
      const Page first = absent_[begin];
      for (end = begin + 1; end < absent_.size() && absent_[end] == first + (end - begin);) ++end;
      TOMBOLO_TRY(stores_follow && store_.in_place() && !shape_.spans_tell_all
                      ? fetcher_.fetch_run_to_keep(first, end - begin)
                      : fetcher_.fetch_run(first, end - begin, stores_follow));
    }
    return {};
  }

  // For the absent pages, as far as they do not push out each other, or the page that was missed,
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
  // thread has got it, it is left to the program for twice as many notices as the last time.
  // Without stores, each of these would cost its readers a copy that they get again in vain.
  void grant(PageNote& note) {
    constexpr std::uint8_t most = 16;
    const bool soon =
        note.kept && note.granted != 0 && (!note.shared || syncs_ - note.closed_at <= 1);
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

  // Pages that others have got since the last notice (DRG6).
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

  bool holds(Lock lock) const { return std::ranges::find(held_, lock, &Span::lock) != held_.end(); }

  // The lock is taken.
  Status enter(Lock lock) {
    // Where spans tell all, there is notice of the log's changes as well: a page that the log has
    // brought up to date before is not dropped.
    const bool log_first = shape_.spans_tell_all;
    if (log_first) TOMBOLO_TRY(apply_updates(lock));
    TOMBOLO_TRY(drop_old());
    if (!log_first) TOMBOLO_TRY(apply_updates(lock));
    held_.push_back({.lock = lock, .updates = {}});
    return {};
  }

  // Where spans tell all, with notice of them (DRG8).
  Status send_stores() {
    if (held_.empty()) return end_region();
    TOMBOLO_TRY(end_part());
    return shape_.spans_tell_all ? tell_all() : Status();
  }

  // ---- Changes outside of spans -----------------------------------------------------------------

  // Before a span begins (DRG1).
  Status end_region() {
    TOMBOLO_TRY(find_readers());
    for (const Page page : written()) TOMBOLO_TRY(flush(page));
    TOMBOLO_TRY(notices_.append(changed_));
    changed_.clear();
    return append_told();
  }

  std::vector<Page> written() {
    constexpr std::ptrdiff_t few = 4;
    std::vector<Page> pages = store_.written();
    few_ = std::ranges::count_if(pages, [this](Page page) { return !store_.lookup(page)->kept; }) <=
           few;
    return pages;
  }

  Status flush(Page page) {
    if (store_.lookup(page)->kept) return announce(page, changed_);
    return send_or_keep(page);
  }

  // DRG7. A page that was stored to with its own contents is worth keeping, too: there may be such
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
    if (differs) note_sent(page, version);
    if (stored) note.alone = note.version == version;
    // The mark counts for pages that have never changed (is_its_own).
    const bool cleared = stored && !differs && note.version == 0;
    if (cleared && store_.in_place()) TOMBOLO_TRY(sender_.mark_cleared(page));
    settle_sent(page, differs);
    return {};
  }

  void note_sent(Page page, std::uint64_t version) {
    const auto updates = differences_of(page, version, handing_over_ ? most_handed_over : 1);
    if (is_told(updates)) return;
    changed_.push_back(page);
    hand_over(updates);
  }

  // Of one page, where spans tell all. Larger changes are those of the thread's stack, as a rule,
  // where it is not kept in place: no other thread needs them, and the log has room for few.
  static constexpr std::size_t most_of_page = 8;
  static constexpr std::size_t most_handed_over = 4;
  // With the lock that is being handed over, if its log holds them all.
  void hand_over(const std::vector<Update>& updates) {
    if (handing_over_ && updates.size() <= most_handed_over &&
        handed_over_.size() + updates.size() <= shape_.updates)
      handed_over_.insert(handed_over_.end(), updates.begin(), updates.end());
  }

  // A page that this thread has stored to before, and no other since; or one that another has
  // cleared, and none has changed: programs clear memory in one thread, and use it in others.
  bool is_its_own(Page page) {
    const PageNote& note = *store_.lookup(page);
    return note.alone || (note.version == 0 && sender_.cleared_by_another(page));
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
  // look for differences is cheaper then than to meet the store. Likewise one that was stored to
  // with its own contents, where spans tell all.
  void settle_sent(Page page, bool differs) {
    PageNote& note = *store_.lookup(page);
    const bool stays = shape_.spans_tell_all || !held_.empty();
    if (note.open != 0) --note.open;
    const bool stored = differs || (note.met && shape_.spans_tell_all);
    if (stored && few_ && stays) note.open = shape_.spans_tell_all ? most_times_open : times_open;
    if (note.kept) note.open = 0;
    if (note.open == 0) {
      store_.forbid_writes(page);
      return;
    }
    note.met = false;
    if (differs) store_.make_twin(page);
  }

  // ---- Changes in spans -------------------------------------------------------------------------

  static constexpr std::uint8_t times_open = 3;
  // Where spans are begun in vain, and many have nothing to do with the page.
  static constexpr std::uint8_t most_times_open = 32;

  // The stores since the last begin or end of a span belong to all locks that are held.
  Status end_part() {
    TOMBOLO_TRY(find_readers());
    for (const Page page : written()) TOMBOLO_TRY(flush_in_span(page));
    recorded_.clear();
    return {};
  }

  // The changes are at their homes, with their versions (end_part()).
  Status tell_all() {
    TOMBOLO_TRY(notices_.append(changed_in_spans_));
    changed_in_spans_.clear();
    return append_told();
  }

  Status append_told() {
    for (const Update& change : told_) TOMBOLO_TRY(notices_.append(change));
    told_.clear();
    return {};
  }

  Status flush_in_span(Page page) {
    if (shape_.spans_tell_all && store_.lookup(page)->kept) {
      recorded_.forget(page);
      return announce(page, changed_in_spans_);
    }
    const bool differs =
        !store_.lookup(page)->twin || difference(store_.frame(page), store_.twin(page), diff_);
    if (differs) {
      std::uint64_t version = 0;
      TOMBOLO_TRY(send_in_span(page, version));
      note_change(page, version);
    }
    recorded_.forget(page);
    settle_sent(page, differs);
    return {};
  }

  // Where spans tell all: a change that is small enough is in its notice.
  bool is_told(const std::vector<Update>& updates) {
    const bool told =
        shape_.spans_tell_all && updates.size() == 1 && WriteNotices<Core>::fits(updates.front());
    if (told) told_.push_back(updates.front());
    return told;
  }

  void note_change(Page page, std::uint64_t version) {
    std::vector<Update> updates =
        shape_.spans_tell_all
            ? differences_of(page, version, std::min<std::size_t>(shape_.updates, most_of_page))
            : recorded_of(page, version);
    if (is_told(updates)) return;
    hand_over(updates);
    // By its name alone.
    if (updates.empty()) updates.push_back({.page = page, .version = version});
    for (Span& span : held_)
      span.updates.insert(span.updates.end(), updates.begin(), updates.end());
    changed_in_spans_.push_back(page);
  }

  Status send_in_span(Page page, std::uint64_t& version) {
    if (store_.lookup(page)->kept) return sender_.announce_to_some(page, version);
    return sender_.send(page, diff_, version);
  }

  // Its difference from the twin, where spans tell all; none if it has none, or if it needs more
  // than `most` updates.
  std::vector<Update> differences_of(Page page, std::uint64_t version, std::size_t most) {
    if (!shape_.spans_tell_all || !store_.lookup(page)->twin) return {};
    std::vector<Update> updates = changes_of(store_.frame(page), diff_, most);
    for (Update& update : updates) {
      update.page = page;
      update.version = version;
    }
    return updates;
  }

  // The recorded bytes; none if other bytes differ from the twin too, if it has none, or if a
  // reader could not find all of them in the log.
  std::vector<Update> recorded_of(Page page, std::uint64_t version) {
    if (!store_.lookup(page)->twin) return {};
    std::vector<Update> updates;
    const std::span<const std::byte> frame = store_.frame(page);
    for (const RecordedRange& range : recorded_.of(page)) {
      std::fill_n(diff_.begin() + static_cast<std::ptrdiff_t>(range.offset), range.bytes,
                  std::byte{});
      for (std::size_t at = 0; at < range.bytes; at += Update::capacity) {
        const std::size_t bytes = std::min(range.bytes - at, Update::capacity);
        Update& update =
            updates.emplace_back(Update{.page = page,
                                        .version = version,
                                        .offset = static_cast<std::uint32_t>(range.offset + at),
                                        .bytes = static_cast<std::uint32_t>(bytes),
                                        .changed = Update::all(bytes)});
        copy(frame.subspan(range.offset + at, bytes), update.contents);
      }
    }
    if (!all_zero(diff_) || updates.size() > shape_.updates) updates.clear();
    return updates;
  }

  // The changes that were made under the lock before (DRG2).
  Status apply_updates(Lock lock) {
    Update last;
    bool lost = false;
    applied_ = false;
    TOMBOLO_TRY(updates_.read(
        lock,
        [&](const Update& update) {
          const Status applied = apply(update, last);
          last = update;
          return applied;
        },
        lost));
    // Where spans tell all, there is notice of each change that the log has lost.
    return lost && !shape_.spans_tell_all ? drop_all_old() : Status();
  }

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

  void patch(const Update& update, PageNote& note) {
    put_into(store_.frame(update.page), update);
    // A difference from the twin would be taken for a store of this thread.
    if (store_.writable(update.page)) put_into(store_.twin(update.page), update);
    note.version = update.version;
    note.alone = false;
  }

  // ---- Copies that are too old ------------------------------------------------------------------

  Status drop_old() {
    bool lost = false;
    early_.clear();
    TOMBOLO_TRY(notices_.read([this](const Update& notice) { return heed(notice); }, lost));
    if (lost) return drop_all_old();
    std::ranges::sort(early_, {}, &Update::version);
    for (const Update& notice : early_) TOMBOLO_TRY(patch_or_drop(notice));
    return {};
  }

  // Threads that send at once may give notice in another order than that of their versions.
  Status heed(const Update& notice) {
    const PageNote* note = store_.lookup(notice.page);
    const bool early =
        note != nullptr && notice.bytes != 0 && !note->kept && note->version + 1 < notice.version;
    if (!early) return patch_or_drop(notice);
    early_.push_back(notice);
    return {};
  }

  Status patch_or_drop(const Update& notice) {
    PageNote* note = store_.lookup(notice.page);
    if (note == nullptr || notice.bytes == 0 || note->kept || note->version + 1 < notice.version)
      return drop_if_old(notice.page);
    if (note->version + 1 == notice.version) patch(notice, *note);
    return {};
  }

  Status drop_all_old() {
    for (const Page page : store_.cached()) TOMBOLO_TRY(drop_if_old(page));
    return {};
  }

  Status drop_if_old(Page page) {
    const PageNote* note = store_.lookup(page);
    return note != nullptr && note->version < directory_.version(page) ? drop(page) : Status();
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
  std::vector<Page> absent_;  // that are being brought
  std::vector<Span> held_;    // in the order in which they began
  RecordedRanges recorded_;
  std::vector<Page> changed_;           // at home, and not in the notices yet
  std::vector<Page> changed_in_spans_;  // likewise; others need it at the barrier only
  std::vector<Update> told_;            // likewise, each to be in its notice
  std::vector<Update> early_;           // of notices that are read, before the one of their page
  bool few_ = false;  // pages with a twin were written to in the part of a span that ended last
  std::uint32_t syncs_ = 0;  // looks for readers
  bool applied_ = false;     // the last update
  bool handing_over_ = false;
  std::vector<Update> handed_over_;  // to be in the log of the lock that is handed over next
  PageBytes diff_;
};

}  // namespace tombolo::dsm
