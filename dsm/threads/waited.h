// SPDX-License-Identifier: Apache-2.0
// Purpose: counts the calls in which a thread waits for others, and how long it was in them.
// Thread safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/status.h"
#include "dsm/records/observer.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

class Waited {
 public:
  // One that wants nothing leaves the clock alone, which takes as long as a free lock.
  explicit Waited(const Observer& observer)
      : timed_(observer.timed || observer.trace != nullptr),
        trace_(observer.trace),
        locks_(of(Trace::Event::lock_wait, "dsm_lock_waits", "dsm_lock_wait_us")),
        barriers_(of(Trace::Event::barrier, "dsm_barriers", "dsm_barrier_us")) {}

  template <class Wait>
  Status for_lock(Wait&& wait) {
    return count(locks_, wait);
  }
  template <class Wait>
  Status at_barrier(Wait&& wait) {
    return count(barriers_, wait);
  }

 private:
  struct Kind {
    Trace::Event event;
    runtime::Counter& calls;
    runtime::Counter& microseconds;
    std::chrono::nanoseconds time{0};
  };
  static Kind of(Trace::Event event, const char* calls, const char* microseconds) {
    return {event, runtime::counters().counter(calls), runtime::counters().counter(microseconds)};
  }

  template <class Wait>
  Status count(Kind& kind, Wait&& wait) {
    if (!timed_) return wait();
    const std::uint64_t start = Trace::now();
    Status status = wait();
    kind.calls.add();
    add(kind, std::chrono::nanoseconds(Trace::now() - start));
    if (trace_ != nullptr) trace_->add(kind.event, Trace::no_page, start);
    return status;
  }
  // Short waits add up: parts of a microsecond are kept for the next one.
  static void add(Kind& kind, std::chrono::nanoseconds time) {
    const auto before = std::chrono::duration_cast<std::chrono::microseconds>(kind.time);
    kind.time += time;
    const auto after = std::chrono::duration_cast<std::chrono::microseconds>(kind.time);
    kind.microseconds.add(static_cast<std::uint64_t>((after - before).count()));
  }

  bool timed_;
  Trace* trace_;
  Kind locks_;
  Kind barriers_;
};

}  // namespace tombolo::dsm
