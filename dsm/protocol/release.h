// SPDX-License-Identifier: Apache-2.0
// Purpose: release consistency, for programs of Pthreads that know of no regions
// (docs/decisions/0026): a span tells all threads of its stores, whichever lock they take next.
//
//   stores                     travel
//   before a lock is taken     to the pages' homes, as differences, when a span begins or ends, and
//   or given back              at the barrier, with notice to all threads; recorded or not
//
// A small change is in its notice, and patches the copies of all threads; a larger one of a span,
// or one that is sent as a lock is handed over, is with the lock for its next holders; other
// threads drop their copies.
//
// Invariants: DRL1 notice of a span's changes is given before its lock is free, as by rule 1: then
//                  all that is ordered by locks is in order. A change of a few bytes, of a span or
//                  not, is in its notice, and in no log: a page that has the version before it is
//                  patched, by each thread (docs/decisions/0059). A kept page has no twin: its
//                  stores are announced to all.
//             DRL2 a thread reads notices only when it has given notice of all its changes of pages
//                  that it caches: its notices patch its own page, too, where that lacks an earlier
//                  change of another thread, and the last one has the newest bytes. It has no
//                  stores then that are not home.
//             DRL3 a lock that is handed over has changes in its log that were sent before it was
//                  taken: in another order than that of their versions, if another thread was
//                  faster. The page that lacks the version between is dropped (DSW2), and there is
//                  notice of all of them.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/protocol/several_writers.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class Release : public SeveralWriters<Release<T, S>, T, S> {
  using Base = SeveralWriters<Release, T, S>;
  friend Base;

 public:
  using typename Base::Core;
  using typename Base::Layout;
  static constexpr const char* name = "release";

  Release(T& transport, S& store, const Layout& layout) : Base(transport, store, layout) {}

  // Stores are alike, recorded or not.
  void record(Page page, std::size_t offset, std::size_t bytes) {
    this->check_record(page, offset, bytes);
  }

  // A span with nothing in it, if the lock is free: `done`. Small changes of this thread that it
  // sends go with the lock, as if the span had made them.
  Status try_hand_over(Lock lock, bool& done) {
    handing_over_ = this->tuning().handed_over_changes;
    Status begun = this->try_begin_span(lock, done);
    handing_over_ = false;
    if (!begun.ok() || !done) return begun;
    held_.back().updates = std::exchange(handed_over_, {});
    return this->end_span(lock);
  }

  Status barrier() {
    TOMBOLO_TRY(append_told());
    return Base::barrier();
  }

  // Rule 3 for some of the threads: the pages that this one keeps stay, as before a span. In spans,
  // too.
  Status tell() { return send_stores(); }

 private:
  // Programs that know of no regions clear memory in one thread that others then use: a page that
  // is kept would have to be given back first.
  static constexpr bool keeps_streams = false;
  static constexpr bool pages_are_patched = true;
  // Most spans have nothing to do with the page.
  static constexpr std::uint8_t times_open = 32;
  // The log of a lock has lines for few changes of one page. Larger changes are those of the
  // thread's stack, as a rule, where it is not kept in place: no other thread needs them.
  static constexpr std::size_t most_of_page = 8;
  static constexpr std::size_t most_handed_over = 4;
  static auto take_notices(machine::SyncLayout& layout, const Shape& shape) {
    return WriteNotices<Core>::take_with_changes(layout, shape);
  }

  bool needs_twin_of_kept() const { return false; }
  // A page that was stored to with its own contents may be stored to so again.
  bool stays_open(const PageNote& note, bool differs) const {
    return differs || (note.met && this->tuning().more_open_pages);
  }

  // There is notice of the log's changes as well: a page that the log has brought up to date before
  // is not dropped. Nor are changes lost that the log has lost.
  Status catch_up(Lock lock) {
    bool lost = false;
    TOMBOLO_TRY(apply_updates(lock, lost));
    return drop_old();
  }

  // Sends this thread's stores, with notice of them (DRL2).
  Status send_stores() {
    if (held_.empty()) {
      TOMBOLO_TRY(end_region());
      return append_told();
    }
    TOMBOLO_TRY(end_part());
    TOMBOLO_TRY(tell_of_spans());
    return append_told();
  }

  Status append_told() {
    for (const Update& change : told_) TOMBOLO_TRY(notices_.append(change));
    told_.clear();
    return {};
  }

  // ---- Changes ----------------------------------------------------------------------------------

  void note_sent(Page page, std::uint64_t version) {
    const auto updates = changes_of(page, version, handing_over_ ? most_handed_over : 1);
    if (is_told(updates)) return;
    changed_.push_back(page);
    hand_over(updates);
  }

  Status flush_in_span(Page page) {
    if (store_.lookup(page)->kept) return this->announce(page, changed_in_spans_);
    const bool differs = difference(store_.frame(page), store_.twin(page), diff_);
    if (differs) {
      std::uint64_t version = 0;
      TOMBOLO_TRY(sender_.send(page, diff_, version));
      note_change(page, version);
    }
    this->settle_sent(page, differs);
    return {};
  }

  void note_change(Page page, std::uint64_t version) {
    const auto updates =
        changes_of(page, version, std::min<std::size_t>(shape_.updates, most_of_page));
    if (is_told(updates)) return;
    hand_over(updates);
    this->put_into_logs(page, version, updates);
  }

  // A change that is small enough is in its notice.
  bool is_told(const std::vector<Update>& updates) {
    const bool told = updates.size() == 1 && WriteNotices<Core>::fits(updates.front());
    if (told) told_.push_back(updates.front());
    return told;
  }

  // The updates go with the lock that is being handed over, if its log holds them all.
  void hand_over(const std::vector<Update>& updates) {
    if (handing_over_ && updates.size() <= most_handed_over &&
        handed_over_.size() + updates.size() <= shape_.updates)
      handed_over_.insert(handed_over_.end(), updates.begin(), updates.end());
  }

  // The bytes that differ from the twin; none if these need more than `most` updates.
  std::vector<Update> changes_of(Page page, std::uint64_t version, std::size_t most) {
    if (!this->tuning().small_changes) return {};
    std::vector<Update> updates = dsm::changes_of(store_.frame(page), diff_, most);
    for (Update& update : updates) {
      update.page = page;
      update.version = version;
    }
    return updates;
  }

  // ---- Notices of others ------------------------------------------------------------------------

  Status drop_old() {
    bool lost = false;
    early_.clear();
    TOMBOLO_TRY(notices_.read([this](const Update& notice) { return heed(notice); }, lost));
    if (lost) return this->drop_all_old();
    std::ranges::sort(early_, {}, &Update::version);
    for (const Update& notice : early_) TOMBOLO_TRY(patch_or_drop(notice));
    return {};
  }

  // Threads that send at once may give notice in another order than that of their versions.
  Status heed(const Update& notice) {
    const PageNote* note = store_.lookup(notice.page);
    const bool early =
        note != nullptr && notice.bytes != 0 && !note->kept && note->version + 1 < notice.version;
    if (!early || !this->tuning().sorted_notices) return patch_or_drop(notice);
    early_.push_back(notice);
    return {};
  }

  Status patch_or_drop(const Update& notice) {
    PageNote* note = store_.lookup(notice.page);
    if (note == nullptr || notice.bytes == 0 || note->kept || note->version + 1 < notice.version)
      return this->drop_if_old(notice.page);
    if (note->version + 1 == notice.version) this->patch(notice, *note);
    return {};
  }

  using Base::apply_updates;
  using Base::changed_;
  using Base::changed_in_spans_;
  using Base::diff_;
  using Base::end_part;
  using Base::end_region;
  using Base::held_;
  using Base::notices_;
  using Base::sender_;
  using Base::shape_;
  using Base::store_;
  using Base::tell_of_spans;
  std::vector<Update> told_;   // at home, each to be in its notice
  std::vector<Update> early_;  // of notices that are read, before the one of their page
  bool handing_over_ = false;
  std::vector<Update> handed_over_;  // to be in the log of the lock that is handed over next
};

}  // namespace tombolo::dsm
