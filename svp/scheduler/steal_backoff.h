// SPDX-License-Identifier: Apache-2.0
// Purpose: how often a worker that finds nothing to do asks the others for tasks. To be asked costs
// a worker as much as several short families, and to wake a sleeper as much as a hundred. So a
// worker that gets nothing for its asks, or tasks that are over at once, asks ever more rarely.
//
// Invariants: PTC1 after `n` looks in vain the next ask comes within n / 16 + 1 looks, and within
//                 `longest`.
//             PTC2 a nap, for which no other worker that has tasks stays attentive, comes after
//                 `sleeps_in_vain` sleeps at least that others have ended, and never after another
//                 nap.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tombolo::svp {

class StealBackoff {
 public:
  using Duration = std::chrono::nanoseconds;
  // Looks that follow each other at once.
  static constexpr std::uint32_t quick = 16;
  // Of looks without an ask.
  static constexpr std::uint32_t longest = 64;
  static constexpr std::uint32_t sleeps_in_vain = 4;
  static constexpr std::chrono::microseconds nap{1000};
  // To hand over a task takes about as long as a shorter one.
  static constexpr std::chrono::microseconds short_task{2};

  // The worker looks, and has found nothing of its own. True: it asks.
  bool look() {
    const bool asks = until_ask_ == 0;
    until_ask_ = asks ? looks_ / 16 : until_ask_ - 1;
    looks_ = std::min(looks_ + 1, 16 * longest - 1);
    return asks;
  }
  bool is_quick() const { return looks_ <= quick; }

  // It goes to sleep, until its signals are not `signals` any more. True: for a nap.
  bool sleeps(std::uint64_t signals) {
    signals_ = signals;
    napped_ = sleeps_ >= sleeps_in_vain && !napped_;
    return napped_;
  }
  // It is up: its next look asks. The signals say whether another worker has woken it, as it may
  // have slept for a time only.
  void wakes(std::uint64_t signals) {
    until_ask_ = 0;
    if (signals != signals_) sleeps_ = std::min(sleeps_ + 1, sleeps_in_vain);
  }

  // It has a task. True: it measures how long that takes.
  bool measures() {
    if (!is_quick()) return true;
    begin_anew();
    return false;
  }
  // That has ended.
  void worked(Duration took) {
    if (took >= short_task) begin_anew();
  }

 private:
  void begin_anew() {
    looks_ = until_ask_ = 0;
    sleeps_ = 0;
    napped_ = false;
  }

  // In vain, as far as they count.
  std::uint32_t looks_ = 0;
  std::uint32_t sleeps_ = 0;
  std::uint32_t until_ask_ = 0;  // looks
  std::uint64_t signals_ = 0;    // before the last sleep
  bool napped_ = false;          // that was a nap
};

}  // namespace tombolo::svp
