// SPDX-License-Identifier: Apache-2.0
// Purpose: events at a later time without a core: a posted write that reaches memory, a message
// that arrives.
// Invariants: EQ1 events come out by time, those of one time in the order in which they went in.
//             EQ2 an event is a function object of at most Event::payload_bytes that can be copied
//                 byte by byte, so that no event allocates memory of its own.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <vector>

#include "simulator/kernel/time.h"

namespace tombolo::simulator {

class Event {
 public:
  static constexpr std::size_t payload_bytes =
      96;  // a line of 64 bytes, its address and its receiver

  Event() = default;
  template <class Function>
  explicit Event(const Function& function)
      : call_([](const std::byte* object, Time now) {
          (*std::launder(reinterpret_cast<const Function*>(object)))(now);
        }) {
    static_assert(std::is_trivially_copyable_v<Function>, "an event captures plain values (EQ2)");
    static_assert(sizeof(Function) <= payload_bytes, "an event captures too much (EQ2)");
    static_assert(alignof(Function) <= alignof(std::max_align_t));
    new (object_) Function(function);
  }
  void operator()(Time now) const { call_(object_, now); }

 private:
  void (*call_)(const std::byte*, Time) = nullptr;
  alignas(std::max_align_t) std::byte object_[payload_bytes];
};

class EventQueue {
 public:
  Time first() const { return heap_.empty() ? Time::never() : heap_.front().time; }

  void push(Time time, const Event& event) {
    std::uint32_t slot = static_cast<std::uint32_t>(events_.size());
    if (free_.empty()) {
      events_.push_back(event);
    } else {
      slot = free_.back();
      free_.pop_back();
      events_[slot] = event;
    }
    heap_.push_back({time, pushed_++, slot});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const std::uint32_t slot = heap_.back().slot;
    heap_.pop_back();
    free_.push_back(slot);
    return events_[slot];
  }

 private:
  struct Entry {
    Time time;
    std::uint64_t number;
    std::uint32_t slot;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }

  std::vector<Entry> heap_;
  std::vector<Event> events_;
  std::vector<std::uint32_t> free_;
  std::uint64_t pushed_ = 0;
};

}  // namespace tombolo::simulator
