// SPDX-License-Identifier: Apache-2.0
#include "dsm/pages/eviction.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint32_t longest_away = 4;  // times the capacity: after that a page is a new one
constexpr std::uint32_t open_part = 8;     // of the capacity is given up before a page rests again
constexpr std::uint32_t places_of_a_store = 4;

}  // namespace

Status Eviction::create(const Shape& shape) {
  came_ = host::ZeroMemory(shape.pages * sizeof(Time));
  if (came_) return {};
  return Status::no_memory("page cache: no address space left for its tables; see ulimit -v");
}

FrameState Eviction::arrive(Frame& frame, bool for_store) {
  frame.since = now_;
  const Time before = came()[frame.page];
  const Time away = now_ - before;
  if (before == 0 || away > longest_away * capacity_) return FrameState::readable;
  if (for_store) {
    if (away <= capacity_) places_ -= std::min(places_, places_of_a_store * parts);
    return FrameState::readable;
  }
  return has_place(away) ? FrameState::returning : FrameState::readable;
}

// A free place, or that of a page which has not been used for as long.
bool Eviction::has_place(Time away) const {
  const Slot taken = staying();
  const Slot places = places_ / parts;
  if (taken < places) return true;
  const Frame* frame = frames_.oldest(FrameState::resting);
  // Those of before have no place any more, and go next.
  for (Slot passed = places; frame != nullptr && passed < taken; ++passed)
    frame = frames_.newer(*frame);
  return frame != nullptr && now_ - frame->since >= away;
}

Frame* Eviction::give_up(const Frame& frame) {
  came()[frame.page] = frame.since;
  if (++now_ == 0) ++now_;
  places_ = std::min(places_ + 1, most_places());
  Frame* oldest = frames_.oldest(FrameState::returning);
  if (oldest == &frame) oldest = frames_.newer(*oldest);
  // Those that were opened together are to be used first.
  if (oldest == nullptr || now_ - oldest->since < capacity_ / open_part) return nullptr;
  oldest->since = now_;
  return oldest;
}

const Frame* Eviction::victim(std::span<const Page> stay) const {
  const Frame* any = nullptr;
  for (const FrameState state : order())
    for (const Frame* frame = frames_.oldest(state); frame != nullptr;
         frame = frames_.newer(*frame)) {
      if (std::ranges::find(stay, frame->page) == stay.end()) return frame;
      if (any == nullptr) any = frame;
    }
  return any;
}

std::array<FrameState, 5> Eviction::order() const {
  using enum FrameState;
  if (staying() > places_ / parts) return {resting, returning, readable, writable, left};
  const Slot others = frames_.count(readable);
  const bool enough = others + staying() >= capacity_ / 4 && others >= capacity_ / 16;
  if (enough) return {readable, writable, left, resting, returning};
  return {writable, left, readable, resting, returning};
}

}  // namespace tombolo::dsm
