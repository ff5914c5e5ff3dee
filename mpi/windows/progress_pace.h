// SPDX-License-Identifier: Apache-2.0
// Purpose: how often calls on a window let the host MPI make progress. An attempt takes the host
// 40 ns where nothing is under way, and some microseconds if it gives the processor away: attempts
// take one nanosecond of each call as a rule, and are not so rare that messages stand still. Given
// away to programs that compute, the processor comes back time slices later: then attempts have a
// fourth of the time.
// Thread safety: any thread. Of attempts that threads make at once any may tell when the next one
// is due.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tombolo::mpi {

class ProgressPace {
 public:
  static constexpr std::int64_t fewest_calls = 128;
  static constexpr std::int64_t most_calls = 512;

  // Times are of one clock that never goes back, in nanoseconds. relaxed: nothing else is read on
  // the strength of the value.
  bool due(std::int64_t now_ns) const { return now_ns >= next_ns_.load(std::memory_order_relaxed); }
  // Notes an attempt; returns after how many calls to look again.
  std::int64_t attempted(std::int64_t start_ns, std::int64_t end_ns) {
    const std::int64_t took = end_ns - start_ns;
    next_ns_.store(end_ns + rest * took, std::memory_order_relaxed);  // as in due()
    return std::clamp(took, fewest_calls, most_calls);
  }

 private:
  static constexpr std::int64_t rest = 3;  // times as long as the attempt took

  std::atomic<std::int64_t> next_ns_{0};
};

}  // namespace tombolo::mpi
