// SPDX-License-Identifier: Apache-2.0
// Purpose: how many threads of a family a worker runs between two looks at its flag: many where
// they are short, so that a look costs nothing and the compiler can vectorize; one where they are
// long, so that a kill, or a worker that finds nothing to do, does not wait.
//
// Invariants: VRL1 a run takes less than `long_run`, as long as threads take about the same time as
//                  those before; it has `longest` threads at most in any case.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tombolo::svp {

class RunLength {
 public:
  static constexpr std::uint32_t longest = 256;

  // The threads of the next run.
  std::uint32_t next() {
    measured_ = --until_measured_ == 0;
    if (measured_) start_ = Clock::now();
    return length_;
  }
  // That run has ended.
  void ended() {
    if (measured_) adjust(Clock::now() - start_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds short_run{400};
  static constexpr std::chrono::nanoseconds long_run{1000};
  // A clock is read for so many runs, once the length is found.
  static constexpr std::uint32_t rarely = 16;

  void adjust(Clock::duration took) {
    const std::uint32_t before = length_;
    if (took < short_run)
      length_ = std::min(2 * length_, longest);
    else if (took > long_run)
      length_ = std::max(length_ / 4, std::uint32_t{1});
    until_measured_ = length_ == before ? rarely : 1;
  }

  std::uint32_t length_ = 1;
  std::uint32_t until_measured_ = 1;
  bool measured_ = false;
  Clock::time_point start_{};
};

}  // namespace tombolo::svp
