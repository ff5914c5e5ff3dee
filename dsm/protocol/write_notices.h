// SPDX-License-Identifier: Apache-2.0
// Purpose: write notices: a list, for all threads, of pages that have been changed at their homes.
// A thread reads those that are new to it and looks at its own copies; so a lock costs as much as
// was changed, not as much as is cached.
//
// A ring of words at one home. Per append: one fetch_add and one store for each page. Per read: one
// load, and one for each new notice.
//
// Invariants: DWN1 notice number s is at place s mod capacity, with the number: a reader tells it
//                  from the one before in that place, and from the one after.
//             DWN2 a place goes through its numbers in order: a writer waits for the notice before
//                  its own. Otherwise a slow writer would overwrite a newer notice, and its readers
//                  would wait for ever.
//             DWN3 a reader that is behind by more than the ring holds is told so, and has to look
//                  at all its copies.
// Waits: for writers between their fetch_add and their store only.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <span>

#include "dsm/protocol/shape.h"
#include "machine/contract.h"
#include "sync/locks/backoff.h"

namespace tombolo::dsm {

template <machine::Core C>
class WriteNotices {
 public:
  struct Layout {
    machine::Offset count = 0;
    machine::Offset notices = 0;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    TOMBOLO_CHECK(shape.pages < most_pages, "write notices: {} pages; fewer than {} can be named",
                  shape.pages, most_pages);
    return {.count = layout.take_lines(1), .notices = layout.take_lines(shape.notices)};
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

  // Calls body(page), which returns a Status, for each notice that this thread has not read yet.
  // `lost`: some are overwritten, and body was not called for all.
  template <class Body>
  Status read(Body&& body, bool& lost) {
    const std::uint64_t end = core_.load(count());
    lost = end - next_ > capacity_;
    while (!lost && next_ < end) {
      std::uint64_t notice = 0;
      TOMBOLO_TRY(wait_for(next_, notice, lost));
      if (lost) break;
      ++next_;
      TOMBOLO_TRY(body(notice & (most_pages - 1)));
    }
    if (lost) next_ = end;
    return {};
  }

 private:
  static constexpr std::uint64_t most_pages = std::uint64_t{1} << 32;
  // Of an empty place: 0.
  static std::uint64_t tag_of(std::uint64_t number) { return (number + 1) & (most_pages - 1); }
  std::uint64_t tag_before(std::uint64_t number) const {
    return number < capacity_ ? 0 : tag_of(number - capacity_);
  }
  typename C::Word count() { return core_.word({home_, layout_.count}); }
  typename C::Word place(std::uint64_t number) {
    return core_.word({home_, layout_.notices + number % capacity_ * 8});
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
