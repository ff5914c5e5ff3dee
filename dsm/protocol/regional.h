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
// Invariants: DRG1 rule 1: the stores of a thread outside of spans are home, and notice is given,
//                  before it takes a lock; a thread that takes any lock after that reads the notice
//                  and drops its older copies.
//             DRG2 rule 2: the stores of a span are home and in the lock's log before the lock is
//                  free; the next holder reads the log. An update is applied to a page that has the
//                  version before it, passed over on a page that has its version or a later one
//                  (which may hold newer bytes), and drops an older page.
//             DRG3 rule 3: at a barrier notice is given of all changed pages, those of spans too
//                  (epoch_barrier.h).
//             DRG4 a page is writable only if a store to it may have happened since the last begin
//                  or end of a span, or barrier. It has a twin then, and bytes that differ from it
//                  were stored since.
//                  Where spans tell all (Shape), notice of a span's changes is given before its
//                  lock is free, as by rule 1: then all that is ordered by locks is in order, for
//                  programs that know of no regions (docs/decisions/0026).
//             DRG5 the home of a page that this thread caches is up to date, but for changes of
//                  threads that it has not heard of; or this thread keeps the page. Barriers are
//                  outside of spans, so that this holds throughout a span.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>

#include "dsm/protocol/consistency.h"
#include "dsm/protocol/epoch_barrier.h"
#include "dsm/protocol/page_fetch.h"
#include "dsm/protocol/read_ahead.h"
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
    typename SpanUpdates<T>::Layout updates;
    typename EpochBarrier<T, S>::Layout barrier;
    typename Reduction<Core>::Layout reduction;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.directory = PageDirectory<Core>::take(layout, shape),
            .notices = WriteNotices<Core>::take(layout, shape),
            .updates = SpanUpdates<T>::take(layout, shape),
            .barrier = EpochBarrier<T, S>::take(layout, shape),
            .reduction = Reduction<Core>::take(layout, shape)};
  }

  Regional(T& transport, S& store, const Layout& layout)
      : shape_(transport.shape()),
        store_(store),
        directory_(transport.core(), layout.directory, shape_),
        fetcher_(transport, store, directory_),
        sender_(transport, store, directory_),
        notices_(transport.core(), layout.notices, shape_),
        updates_(transport, layout.updates),
        barrier_(transport, store, directory_, sender_, layout.barrier),
        reduction_(transport.core(), layout.reduction),
        ahead_(shape_) {}

  // ---- Accesses ---------------------------------------------------------------------------------

  Status read_miss(Page page) {
    shape_.check(page);
    if (store_.full()) TOMBOLO_TRY(evict(store_.victim()));
    TOMBOLO_TRY(fetcher_.fetch(page));
    return bring_others(page, ahead_.end_after(page));
  }

  Status write_miss(Page page) {
    if (store_.lookup(page) == nullptr) TOMBOLO_TRY(read_miss(page));
    if (store_.writable(page)) return {};
    store_.make_twin(page);
    store_.allow_writes(page);
    return {};
  }

  void record(Page page, std::size_t offset, std::size_t bytes) {
    shape_.check(page);
    TOMBOLO_CHECK(offset + bytes <= shape_.page_bytes,
                  "record: {} bytes at offset {} are more than page {} has", bytes, offset, page);
    if (!held_.empty()) recorded_.push_back({.page = page, .offset = offset, .bytes = bytes});
  }

  Status evict(Page page) {
    if (store_.writable(page)) TOMBOLO_TRY(held_.empty() ? flush(page) : flush_in_span(page));
    // The home waits for a kept page also where it has not changed since.
    if (store_.lookup(page)->kept) TOMBOLO_TRY(sender_.give_back(page, {}));
    store_.invalidate(page);
    return {};
  }

  Status poll() { return {}; }

  // ---- Synchronization --------------------------------------------------------------------------

  Status begin_span(Lock lock) {
    shape_.check_lock(lock);
    TOMBOLO_CHECK(!holds(lock), "begin_span: this thread holds lock {} already", lock);
    TOMBOLO_TRY(held_.empty() ? end_region() : end_part());
    TOMBOLO_TRY(updates_.acquire(lock));
    return enter(lock);
  }

  Status try_begin_span(Lock lock, bool& taken) {
    shape_.check_lock(lock);
    taken = false;
    // A thread that asks again and again for a lock that is not free sends nothing.
    if (holds(lock) || updates_.held(lock)) return {};
    TOMBOLO_TRY(held_.empty() ? end_region() : end_part());
    taken = updates_.try_acquire(lock);
    return taken ? enter(lock) : Status();
  }

  Status end_span(Lock lock) {
    TOMBOLO_CHECK(holds(lock), "end_span: this thread does not hold lock {}", lock);
    TOMBOLO_TRY(end_part());
    if (shape_.spans_tell_all) TOMBOLO_TRY(tell_all());
    const auto span = std::ranges::find(held_, lock, &Span::lock);
    TOMBOLO_TRY(updates_.append(lock, span->updates));
    updates_.release(lock);
    held_.erase(span);
    return {};
  }

  Status barrier() {
    TOMBOLO_CHECK(held_.empty(), "barrier: this thread holds {} locks", held_.size());
    changed_.insert(changed_.end(), changed_in_spans_.begin(), changed_in_spans_.end());
    changed_in_spans_.clear();
    return barrier_.wait(notices_, changed_, [this] { return drop_old(); });
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
  struct Range {
    Page page;
    std::size_t offset;
    std::size_t bytes;
  };
  struct Span {
    Lock lock;
    std::vector<Update> updates;
  };

  // Those behind the page that was missed, which stays.
  Status bring_others(Page missed, Page end) {
    for (Page page = missed + 1; page < end; ++page) {
      if (store_.lookup(page) != nullptr) continue;
      if (store_.full()) {
        const Page victim = store_.victim();
        if (missed <= victim && victim < page) return {};
        TOMBOLO_TRY(evict(victim));
      }
      TOMBOLO_TRY(fetcher_.fetch(page));
    }
    return {};
  }

  bool holds(Lock lock) const { return std::ranges::find(held_, lock, &Span::lock) != held_.end(); }

  // The lock is taken.
  Status enter(Lock lock) {
    TOMBOLO_TRY(drop_old());
    TOMBOLO_TRY(apply_updates(lock));
    held_.push_back({.lock = lock, .updates = {}});
    return {};
  }

  // ---- Changes outside of spans -----------------------------------------------------------------

  // Before a span begins (DRG1).
  Status end_region() {
    for (const Page page : store_.written()) TOMBOLO_TRY(flush(page));
    TOMBOLO_TRY(notices_.append(changed_));
    changed_.clear();
    return {};
  }

  Status flush(Page page) {
    if (difference(store_.frame(page), store_.twin(page), diff_)) {
      TOMBOLO_TRY(sender_.send(page, diff_));
      sender_.raise(page);
      changed_.push_back(page);
    }
    store_.forbid_writes(page);
    return {};
  }

  // ---- Changes in spans -------------------------------------------------------------------------

  // The stores since the last begin or end of a span belong to all locks that are held.
  Status end_part() {
    for (const Page page : store_.written()) TOMBOLO_TRY(flush_in_span(page));
    recorded_.clear();
    return {};
  }

  // The changes are at their homes, with their versions (end_part()).
  Status tell_all() {
    TOMBOLO_TRY(notices_.append(changed_in_spans_));
    changed_in_spans_.clear();
    return {};
  }

  Status flush_in_span(Page page) {
    if (difference(store_.frame(page), store_.twin(page), diff_)) {
      TOMBOLO_TRY(sender_.send(page, diff_));
      const std::uint64_t version = sender_.raise(page);
      for (const Update& update : updates_of(page, version))
        for (Span& span : held_) span.updates.push_back(update);
      changed_in_spans_.push_back(page);
    }
    std::erase_if(recorded_, [page](const Range& range) { return range.page == page; });
    store_.forbid_writes(page);
    return {};
  }

  // The recorded bytes; the page by its name alone if other bytes differ from the twin too.
  std::vector<Update> updates_of(Page page, std::uint64_t version) {
    std::vector<Update> updates;
    const std::span<const std::byte> frame = store_.frame(page);
    for (const Range& range : recorded_) {
      if (range.page != page) continue;
      std::fill_n(diff_.begin() + static_cast<std::ptrdiff_t>(range.offset), range.bytes,
                  std::byte{});
      for (std::size_t at = 0; at < range.bytes; at += Update::capacity) {
        const std::size_t bytes = std::min(range.bytes - at, Update::capacity);
        Update& update =
            updates.emplace_back(Update{.page = page,
                                        .version = version,
                                        .offset = static_cast<std::uint32_t>(range.offset + at),
                                        .bytes = static_cast<std::uint32_t>(bytes)});
        copy(frame.subspan(range.offset + at, bytes), update.contents);
      }
    }
    if (!all_zero(diff_)) updates = {Update{.page = page, .version = version}};
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
          apply(update, last);
          last = update;
        },
        lost));
    if (lost) drop_all_old();
    return {};
  }

  // `last`: the one before it in the log. Updates of one page and version are one change.
  void apply(const Update& update, const Update& last) {
    PageNote* note = store_.lookup(update.page);
    const bool continues = applied_ && update.page == last.page && update.version == last.version;
    applied_ = false;
    if (note == nullptr || (note->version >= update.version && !continues)) return;
    if (update.bytes == 0 || note->version + 1 < update.version) return drop(update.page);
    applied_ = true;
    copy(std::span(update.contents).first(update.bytes),
         store_.frame(update.page).subspan(update.offset, update.bytes));
    note->version = update.version;
  }

  // ---- Copies that are too old ------------------------------------------------------------------

  Status drop_old() {
    bool lost = false;
    TOMBOLO_TRY(notices_.read(
        [this](Page page) {
          drop_if_old(page);
          return Status();
        },
        lost));
    if (lost) drop_all_old();
    return {};
  }

  void drop_all_old() {
    for (const Page page : store_.cached()) drop_if_old(page);
  }

  void drop_if_old(Page page) {
    const PageNote* note = store_.lookup(page);
    if (note != nullptr && note->version < directory_.version(page)) drop(page);
  }

  void drop(Page page) {
    TOMBOLO_CHECK(!store_.writable(page) && !sender_.keeps(page),
                  "virtual shared memory: page {} is dropped with stores that are not home", page);
    store_.invalidate(page);
  }

  const Shape& shape_;
  S& store_;
  PageDirectory<Core> directory_;
  PageFetch<T, S> fetcher_;
  PageSend<T, S> sender_;
  WriteNotices<Core> notices_;
  SpanUpdates<T> updates_;
  EpochBarrier<T, S> barrier_;
  Reduction<Core> reduction_;
  ReadAhead ahead_;
  std::vector<Span> held_;  // in the order in which they began
  std::vector<Range> recorded_;
  std::vector<Page> changed_;           // at home, and not in the notices yet
  std::vector<Page> changed_in_spans_;  // likewise; others need it at the barrier only
  bool applied_ = false;                // the last update
  PageBytes diff_;
};

}  // namespace tombolo::dsm
