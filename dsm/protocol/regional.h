// SPDX-License-Identifier: Apache-2.0
// Purpose: regional consistency (003 chapter 3), for programs that call tombolo/dsm.h: stores in a
// span are for the next holders of its lock. docs/model/threads.md says to the author of a program
// how it behaves.
//
//   stores                 travel
//   outside of spans       before the next span of this thread begins, or at the barrier: to the
//                          pages' homes, as differences; other threads drop their copies when
//                          a span of theirs begins, or at the barrier
//   in a span, recorded    when it ends, to the homes, and with the lock to its next holders
//   in a span, others      likewise, but the holders drop the page
//
// Invariants: DRG1 rule 2: the stores of a span are home and in the lock's log before the lock is
//                  free; the next holder reads the log (DSW2). Other threads have notice of them at
//                  the barrier, or when this thread tells.
//             DRG2 a kept page that is opened for stores in a span has a twin: its recorded bytes
//                  travel with the lock if no others have changed.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/protocol/recorded_ranges.h"
#include "dsm/protocol/several_writers.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class Regional : public SeveralWriters<Regional<T, S>, T, S> {
  using Base = SeveralWriters<Regional, T, S>;
  friend Base;

 public:
  using typename Base::Core;
  using typename Base::Layout;
  static constexpr const char* name = "regional";

  Regional(T& transport, S& store, const Layout& layout) : Base(transport, store, layout) {}

  void record(Page page, std::size_t offset, std::size_t bytes) {
    this->check_record(page, offset, bytes);
    if (!held_.empty()) recorded_.add({.page = page, .offset = offset, .bytes = bytes});
  }

  // Rule 3 for some of the threads: the pages that this one keeps stay, as before a span.
  Status tell() {
    TOMBOLO_CHECK(held_.empty(), "tell: this thread holds {} locks", held_.size());
    TOMBOLO_TRY(send_stores());
    return tell_of_spans();
  }

 private:
  // The stores of a stream are of one thread.
  static constexpr bool keeps_streams = true;
  static constexpr bool pages_are_patched = false;
  static constexpr std::uint8_t times_open = 3;
  static auto take_notices(machine::SyncLayout& layout, const Shape& shape) {
    return WriteNotices<Core>::take(layout, shape);
  }

  bool needs_twin_of_kept() const { return !held_.empty(); }
  bool stays_open(const PageNote&, bool differs) const { return differs && !held_.empty(); }

  Status catch_up(Lock lock) {
    bool lost = false;
    TOMBOLO_TRY(drop_old());
    TOMBOLO_TRY(apply_updates(lock, lost));
    return lost ? drop_all_old() : Status();
  }

  Status drop_old() {
    bool lost = false;
    TOMBOLO_TRY(notices_.read(
        [this](const Update& notice) { return this->drop_if_old(notice.page); }, lost));
    return lost ? drop_all_old() : Status();
  }

  Status send_stores() {
    if (held_.empty()) return end_region();
    TOMBOLO_TRY(end_part());
    recorded_.clear();
    return {};
  }

  void note_sent(Page page, std::uint64_t /*version*/) { changed_.push_back(page); }

  // ---- Changes in spans -------------------------------------------------------------------------

  Status flush_in_span(Page page) {
    const bool differs =
        !store_.lookup(page)->twin || difference(store_.frame(page), store_.twin(page), diff_);
    if (differs) {
      std::uint64_t version = 0;
      TOMBOLO_TRY(send_in_span(page, version));
      this->put_into_logs(page, version, recorded_of(page, version));
    }
    recorded_.forget(page);
    this->settle_sent(page, differs);
    return {};
  }

  Status send_in_span(Page page, std::uint64_t& version) {
    if (store_.lookup(page)->kept) return sender_.announce_to_some(page, version);
    return sender_.send(page, diff_, version);
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

  using Base::apply_updates;
  using Base::changed_;
  using Base::diff_;
  using Base::drop_all_old;
  using Base::end_part;
  using Base::end_region;
  using Base::held_;
  using Base::notices_;
  using Base::sender_;
  using Base::shape_;
  using Base::store_;
  using Base::tell_of_spans;
  RecordedRanges recorded_;
};

}  // namespace tombolo::dsm
