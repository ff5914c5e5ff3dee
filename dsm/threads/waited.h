// SPDX-License-Identifier: Apache-2.0
// Purpose: counts the calls in which a thread waits for others, and how long it was in them.
// Thread safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/status.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

class Waited {
 public:
  // `timed`: false leaves the clock alone, which takes as long as a free lock.
  explicit Waited(bool timed)
      : timed_(timed),
        locks_(of("dsm_lock_waits", "dsm_lock_wait_us")),
        barriers_(of("dsm_barriers", "dsm_barrier_us")) {}

  template <class Wait>
  Status for_lock(Wait&& wait) {
    return count(locks_, wait);
  }
  template <class Wait>
  Status at_barrier(Wait&& wait) {
    return count(barriers_, wait);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Kind {
    runtime::Counter& calls;
    runtime::Counter& microseconds;
    std::chrono::nanoseconds time{0};
  };
  static Kind of(const char* calls, const char* microseconds) {
    return {runtime::counters().counter(calls), runtime::counters().counter(microseconds)};
  }

  template <class Wait>
  Status count(Kind& kind, Wait&& wait) {
    if (!timed_) return wait();
    const auto start = Clock::now();
    Status status = wait();
    kind.calls.add();
    add(kind, Clock::now() - start);
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
  Kind locks_;
  Kind barriers_;
};

}  // namespace tombolo::dsm
