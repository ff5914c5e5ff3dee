// SPDX-License-Identifier: Apache-2.0
// Purpose: lets one thread of a test run at a time, and passes the turn on at random before each of
// its steps: a seed gives the same execution each time, so that luck has no part in it.
// Thread safety: yes.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/random.h"

namespace tombolo::dsm::testing {

class Turns {
 public:
  // A turn lasts `steps` steps on average.
  Turns(std::uint32_t threads, std::uint64_t seed, std::uint64_t steps = 1)
      : running_(threads, false), random_(seed), steps_(steps) {}

  // The first turn is given once all threads have come.
  void begin(std::uint32_t self) {
    std::unique_lock lock(mutex_);
    running_[self] = true;
    if (++begun_ == running_.size()) pass_on();
    wait(lock, self);
  }
  void next(std::uint32_t self) {
    std::unique_lock lock(mutex_);
    if (!random_.one_in(steps_)) return;
    pass_on();
    if (turn_ != self) wait(lock, self);
  }
  void end(std::uint32_t self) {
    const std::lock_guard lock(mutex_);
    running_[self] = false;
    if (--begun_ > 0) pass_on();
  }

 private:
  void pass_on() {
    do turn_ = static_cast<std::uint32_t>(random_.below(running_.size()));
    while (!running_[turn_]);
    changed_.notify_all();
  }
  void wait(std::unique_lock<std::mutex>& lock, std::uint32_t self) {
    changed_.wait(lock, [&] { return turn_ == self; });
  }

  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> running_;
  std::size_t begun_ = 0;
  std::uint32_t turn_ = none;
  Random random_;
  std::uint64_t steps_;
};

}  // namespace tombolo::dsm::testing
