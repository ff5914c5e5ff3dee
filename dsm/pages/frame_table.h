// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages have memory in this process: a frame for each, found by page and by slot,
// and by its state, in order of age.
//
//   unused     of no page, and without memory
//   dropped    not cached: the page may come again, and its memory is the next to be given up
//   readable, writable, left (to the program)
//
// Each operation takes a few loads and stores, whatever the number of pages. Nothing is allocated
// after create(), so that all of it may be called in a signal handler, but for the lists of pages.
//
// Invariants: DFR1 a slot that is used is in the list of its frame's state, oldest first: by the
//                  time at which it came to that state.
//             DFR2 slots are used in ascending order, and one that is used stays so.
// Memory: 4 bytes for each page of the shape and 40 for each frame, where they are touched.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "dsm/protocol/page_store.h"
#include "host/faults/guarded_memory.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

enum class FrameState : std::uint8_t { unused, dropped, readable, writable, left };

struct Frame {
  Page page = 0;
  PageNote note;
  FrameState state = FrameState::unused;
  host::Access view = host::Access::closed;  // as the kernel has it
  bool changing = false;                     // the view does not follow the state yet
  // Slots of the same state, from 1; 0: none.
  std::uint32_t older = 0;
  std::uint32_t newer = 0;
};

class FrameTable {
 public:
  using Slot = std::uint32_t;

  Status create(const Shape& shape) {
    index_ = host::ZeroMemory(shape.pages * sizeof(Slot));
    frames_ = host::ZeroMemory(std::size_t{shape.cached_pages} * sizeof(Frame));
    if (index_ && frames_) return {};
    return Status::no_memory("page cache: no address space left for its tables; see ulimit -v");
  }

  Frame& operator[](Slot slot) { return frames_.as<Frame>()[slot]; }
  const Frame& operator[](Slot slot) const { return frames_.as<Frame>()[slot]; }

  // Null if the page has no frame.
  Frame* find(Page page) { return at(index()[page]); }
  const Frame* find(Page page) const { return const_cast<FrameTable*>(this)->find(page); }
  Slot slot_of(const Frame& frame) const {
    return static_cast<Slot>(&frame - frames_.as<const Frame>());
  }

  Slot used() const { return used_; }
  Slot count(FrameState state) const { return list(state).count; }
  // Of the state, and the next one in order of age; null if there is none.
  Frame* oldest(FrameState state) { return at(list(state).oldest); }
  const Frame* oldest(FrameState state) const { return at(list(state).oldest); }
  const Frame* newer(const Frame& frame) const { return at(frame.newer); }

  // A new one in the next slot, for no page yet.
  Frame& add() {
    Frame& frame = (*this)[used_++];
    append(frame, FrameState::unused);
    return frame;
  }
  // An unused frame becomes that of a page that has none.
  void assign(Frame& frame, Page page) {
    frame.page = page;
    index()[page] = slot_of(frame) + 1;
  }
  void release(Frame& frame) {
    index()[frame.page] = 0;
    move(frame, FrameState::unused);
  }
  void move(Frame& frame, FrameState state) {
    remove(frame);
    append(frame, state);
  }

  // Behind those that are in `pages`, in order of age.
  void append_pages(FrameState state, std::vector<Page>& pages) const {
    for (const Frame* frame = oldest(state); frame != nullptr; frame = newer(*frame))
      pages.push_back(frame->page);
  }

 private:
  struct List {
    Slot oldest = 0;  // as Frame::older
    Slot newest = 0;
    Slot count = 0;
  };
  Frame* at(Slot place) { return place == 0 ? nullptr : &(*this)[place - 1]; }
  const Frame* at(Slot place) const { return place == 0 ? nullptr : &(*this)[place - 1]; }
  Slot* index() { return index_.as<Slot>(); }
  List& list(FrameState state) { return lists_[static_cast<std::size_t>(state)]; }
  const List& list(FrameState state) const { return lists_[static_cast<std::size_t>(state)]; }

  void append(Frame& frame, FrameState state) {
    List& to = list(state);
    frame.state = state;
    frame.older = to.newest;
    frame.newer = 0;
    const Slot place = slot_of(frame) + 1;
    (to.newest == 0 ? to.oldest : at(to.newest)->newer) = place;
    to.newest = place;
    ++to.count;
  }
  void remove(Frame& frame) {
    List& from = list(frame.state);
    (frame.older == 0 ? from.oldest : at(frame.older)->newer) = frame.newer;
    (frame.newer == 0 ? from.newest : at(frame.newer)->older) = frame.older;
    --from.count;
  }

  host::ZeroMemory index_;   // by page, its slot; from 1
  host::ZeroMemory frames_;  // by slot
  std::array<List, 5> lists_{};
  Slot used_ = 0;
};

}  // namespace tombolo::dsm
