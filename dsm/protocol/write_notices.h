// SPDX-License-Identifier: Apache-2.0
// Purpose: write notices: a list, for all threads, of pages that have been changed at their homes.
// A thread reads those that are new to it and looks at its own copies; so a lock costs as much as
// was changed, not as much as is cached.
//
// A ring of words at one home. Per append: one fetch_add and one store for each page. Per read: one
// load, and one for each new notice. A notice may hold the change itself, a few bytes of one page:
// two stores more, and three loads.
//
// Invariants: DWN1 notice number s is at place s mod capacity, with the number: a reader tells it
//                  from the one before in that place, and from the one after.
//             DWN2 a place goes through its numbers in order: a writer waits for the notice before
//                  its own. Otherwise a slow writer would overwrite a newer notice, and its readers
//                  would wait for ever.
//             DWN3 a reader that is behind by more than the ring holds is told so, and has to look
//                  at all its copies.
//             DWN4 the bytes of a change are stored before its notice, after the number of the
//                  notice is taken: a reader that finds after it has loaded them that the next
//                  number of that place is not taken has loaded those of this notice (R3).
// Waits: for writers between their fetch_add and their store only.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "dsm/protocol/shape.h"
#include "dsm/protocol/transport.h"
#include "machine/contract.h"
#include "sync/locks/backoff.h"

namespace tombolo::dsm {

template <machine::Core C>
class WriteNotices {
 public:
  struct Layout {
    machine::Offset count = 0;
    machine::Offset notices = 0;
    machine::Offset changes = 0;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    TOMBOLO_CHECK(shape.pages <= most_pages, "write notices: {} pages; at most {} can be named",
                  shape.pages, most_pages);
    return {.count = layout.take_lines(1), .notices = layout.take_lines(shape.notices)};
  }
  // Of notices that may hold changes.
  static Layout take_with_changes(machine::SyncLayout& layout, const Shape& shape) {
    Layout taken = take(layout, shape);
    taken.changes = layout.take_lines(shape.notices * words_per_change);
    return taken;
  }

  WriteNotices(C& core, Layout layout, const Shape& shape)
      : WriteNotices(core, layout, shape, shape.first_home()) {}
  WriteNotices(C& core, Layout layout, const Shape& shape, machine::Home home)
      : core_(core),
        layout_(layout),
        home_(home),
        capacity_(shape.notices),
        backoff_(core, {.backoff_first_ns = 100, .backoff_max_ns = 20'000}) {}

  // The changes are at their homes, with their versions. All threads that read after this has
  // returned are told of them: the stores are ordered before any later atomic (R3).
  Status append(std::span<const Page> pages) {
    while (!pages.empty()) {
      const auto part = pages.first(std::min<std::size_t>(pages.size(), capacity_));
      const std::uint64_t first = core_.fetch_add(count(), part.size());
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::uint64_t number = first + i;
        TOMBOLO_TRY(wait_for_previous(number));
        core_.store(place(number), tag_of(number) << 32 | part[i]);
      }
      pages = pages.subspan(part.size());
    }
    return {};
  }

  // Whether a notice may hold it.
  static bool fits(const Update& change) {
    return change.bytes != 0 && change.bytes <= sizeof(std::uint64_t) &&
           change.offset < most_offsets && change.version < most_versions;
  }
  // Likewise with the change itself. The layout is one with changes.
  Status append(const Update& change) {
    const std::uint64_t number = core_.fetch_add(count(), 1);
    TOMBOLO_TRY(wait_for_previous(number));
    std::uint64_t contents = 0;
    std::memcpy(&contents, change.contents.data(), change.bytes);
    // Before the notice (DWN4).
    core_.store(change_word(number, 0),
                change.version << 24 | std::uint64_t{change.offset} << 8 | change.changed);
    core_.store(change_word(number, 1), contents);
    core_.store(place(number), tag_of(number) << 32 | holds_change | change.page);
    return {};
  }

  // Calls body(update), which returns a Status, for each notice that this thread has not read yet;
  // without bytes where it holds no change. `lost`: some are overwritten, and body was not called
  // for all.
  template <class Body>
  Status read(Body&& body, bool& lost) {
    const std::uint64_t end = core_.load(count());
    lost = end - next_ > capacity_;
    while (!lost && next_ < end) {
      std::uint64_t notice = 0;
      TOMBOLO_TRY(wait_for(next_, notice, lost));
      Update update{.page = notice & (most_pages - 1)};
      if (!lost && (notice & holds_change) != 0) lost = !load_change(next_, update);
      if (lost) break;
      ++next_;
      TOMBOLO_TRY(body(update));
    }
    if (lost) next_ = end;
    return {};
  }

 private:
  static constexpr std::uint64_t most_pages = std::uint64_t{1} << 31;
  static constexpr std::uint64_t holds_change = most_pages;
  static constexpr std::uint64_t tags = std::uint64_t{1} << 32;
  static constexpr std::uint32_t most_offsets = 1U << 16;
  static constexpr std::uint64_t most_versions = std::uint64_t{1} << 40;
  static constexpr std::size_t words_per_change = 2;
  // Of an empty place: 0.
  static std::uint64_t tag_of(std::uint64_t number) { return (number + 1) & (tags - 1); }
  std::uint64_t tag_before(std::uint64_t number) const {
    return number < capacity_ ? 0 : tag_of(number - capacity_);
  }
  typename C::Word count() { return core_.word({home_, layout_.count}); }
  typename C::Word place(std::uint64_t number) {
    return core_.word({home_, layout_.notices + number % capacity_ * 8});
  }

  typename C::Word change_word(std::uint64_t number, std::uint64_t index) {
    return core_.word(
        {home_, layout_.changes + (number % capacity_ * words_per_change + index) * 8});
  }

  // The one of notice `number`; false if it may be overwritten.
  bool load_change(std::uint64_t number, Update& out) {
    const std::uint64_t about = core_.load(change_word(number, 0));
    const std::uint64_t contents = core_.load(change_word(number, 1));
    out.version = about >> 24;
    out.offset = static_cast<std::uint32_t>(about >> 8) % most_offsets;
    out.changed = static_cast<std::uint32_t>(about & 0xff);
    out.bytes = static_cast<std::uint32_t>(std::bit_width(out.changed));
    std::memcpy(out.contents.data(), &contents, sizeof contents);
    return core_.load(count()) <= number + capacity_;  // DWN4
  }

  Status wait_for_previous(std::uint64_t number) {
    backoff_.reset();
    while (core_.load(place(number)) >> 32 != tag_before(number)) TOMBOLO_TRY(backoff_.pause());
    return {};
  }
  Status wait_for(std::uint64_t number, std::uint64_t& notice, bool& lost) {
    backoff_.reset();
    while ((notice = core_.load(place(number))) >> 32 == tag_before(number))
      TOMBOLO_TRY(backoff_.pause());
    lost = notice >> 32 != tag_of(number);
    return {};
  }

  C& core_;
  Layout layout_;
  machine::Home home_;
  std::uint64_t capacity_;
  sync::Backoff<C> backoff_;
  std::uint64_t next_ = 0;
};

}  // namespace tombolo::dsm
