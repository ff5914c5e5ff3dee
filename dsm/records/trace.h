// SPDX-License-Identifier: Apache-2.0
// Purpose: the last events of a thread with their times, for a viewer of traces.
//
//   const auto start = Trace::now();
//   ...
//   trace.add(Trace::Event::fetch, page, start);          // in a signal handler, too
//
// Invariants: DEV1 add() allocates nothing, takes no lock and makes no system call.
//             DEV2 two events of a thread lie one in the other or apart: each is added when it
//                  ends.
// Memory: 24 bytes for each event that was added, 6 MiB at most; or a place that others read, too.
// Thread safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dsm/protocol/shape.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

class Trace {
 public:
  enum class Event : std::uint8_t {
    read_fault,
    write_fault,
    fetch,
    collect,
    send_page,
    send_difference,
    lock_wait,
    barrier
  };
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 18;
  static constexpr std::uint64_t no_page = ~std::uint64_t{0};

  Trace() : own_(bytes_for(capacity)), head_(own_.as<Head>()), most_(capacity) {}
  // Memory of zeros at first, for one event at least: a second object over it, later or in another
  // process, has the events that the first one has added.
  explicit Trace(std::span<std::byte> place)
      : head_(reinterpret_cast<Head*>(place.data())),
        most_((place.size() - sizeof(Head)) / sizeof(Entry)) {}
  static constexpr std::size_t bytes_for(std::uint64_t events) {
    return sizeof(Head) + events * sizeof(Entry);
  }
  // Whether there was address space for the events.
  bool ready() const { return head_ != nullptr; }

  // Nanoseconds of a clock that all processes of the host have.
  static std::uint64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  }
  // An event that began at `start`, and ends now. The oldest one gives way.
  void add(Event event, std::uint64_t page, std::uint64_t start) {
    entries()[head_->count++ % most_] = {
        .start = start,
        .nanoseconds = now() - start,
        .page_and_event = page << 8 | static_cast<std::uint64_t>(event)};
  }

  std::uint64_t count() const { return head_->count; }
  // Of the oldest event that is there; now() if there is none.
  std::uint64_t first() const;
  // Lines of JSON (trace events of Chrome's format, which Perfetto opens), each with a comma behind
  // it. `zero`: the time that is 0 there; `what` has the number.
  std::string lines(Thread number, std::uint64_t zero, std::string_view what = "thread") const;

 private:
  struct Entry {
    std::uint64_t start;
    std::uint64_t nanoseconds;
    std::uint64_t page_and_event;
  };
  struct Head {
    std::uint64_t count;
  };
  // Behind the head.
  Entry* entries() const { return reinterpret_cast<Entry*>(head_ + 1); }

  host::ZeroMemory own_;
  Head* head_;
  std::uint64_t most_;
};

}  // namespace tombolo::dsm
