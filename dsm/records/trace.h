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
// Memory: 24 bytes for each event that was added, 6 MiB at most.
// Thread safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

  Trace() : events_(capacity * sizeof(Entry)) {}
  // Whether there was address space for the events.
  bool ready() const { return static_cast<bool>(events_); }

  // Nanoseconds of a clock that all processes of the host have.
  static std::uint64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  }
  // An event that began at `start`, and ends now. The oldest one gives way.
  void add(Event event, std::uint64_t page, std::uint64_t start) {
    events_.as<Entry>()[count_++ % capacity] = {
        .start = start,
        .nanoseconds = now() - start,
        .page_and_event = page << 8 | static_cast<std::uint64_t>(event)};
  }

  std::uint64_t count() const { return count_; }
  // Of the oldest event that is there; now() if there is none.
  std::uint64_t first() const;
  // Lines of JSON (trace events of Chrome's format, which Perfetto opens), each with a comma behind
  // it. `zero`: the time that is 0 there.
  std::string lines(Thread thread, std::uint64_t zero) const;

 private:
  struct Entry {
    std::uint64_t start;
    std::uint64_t nanoseconds;
    std::uint64_t page_and_event;
  };

  host::ZeroMemory events_;
  std::uint64_t count_ = 0;
};

}  // namespace tombolo::dsm
