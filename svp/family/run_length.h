// SPDX-License-Identifier: Apache-2.0
// Purpose: how many threads of a family a worker runs between two looks at its flag, by the time
// that they take: many where they are short, so that a look costs nothing and the compiler can
// vectorize; one where they are long, so that a kill, or a worker that finds nothing to do, does
// not wait. These are a stride; a run of several strides is measured at once, since a clock costs
// more than a look.
//
// Invariants: VRL1 between two looks a worker runs `longest_stride` threads at most, and no more of
//                  them than take `long_stride` if they take as long as those of the run before.
//             VRL2 each run is measured: after one whose strides took longer, the next one is a
//                  single thread.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace tombolo::svp {

template <class Clock = std::chrono::steady_clock>
class RunLength {
 public:
  static constexpr std::uint32_t longest_stride = 32;
  static constexpr std::uint32_t longest = 32768;
  static constexpr std::chrono::nanoseconds short_stride{400};
  static constexpr std::chrono::nanoseconds long_stride{1000};

  // Runs follow, one after the other.
  void begin() { start_ = Clock::now(); }
  // The threads of the next one, and of its strides: powers of 2.
  std::uint32_t next() const { return stride_ * strides_; }
  std::uint32_t stride() const { return stride_; }
  // So many of them have run: all, or whole strides.
  void ended(std::uint64_t threads) {
    const auto now = Clock::now();
    adjust(now - start_, static_cast<std::int64_t>((threads + stride_ - 1) / stride_));
    start_ = now;
  }

 private:
  // A clock, which waits for all loads before it, costs a hundredth of it.
  static constexpr std::chrono::nanoseconds short_run{2000};

  void adjust(typename Clock::duration took, std::int64_t strides) {
    if (took > strides * long_stride)
      stride_ = strides_ = 1;
    else if (took >= short_run)
      return;
    else if (took < strides * short_stride && stride_ < longest_stride)
      stride_ *= 2;
    else if (next() < longest)
      strides_ *= 2;
  }

  std::uint32_t stride_ = 1;
  std::uint32_t strides_ = 1;
  typename Clock::time_point start_{};
};

}  // namespace tombolo::svp
