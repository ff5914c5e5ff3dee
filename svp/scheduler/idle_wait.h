// SPDX-License-Identifier: Apache-2.0
// Purpose: how a worker that has found nothing to do goes on looking until it sleeps: as
// machine::Waiter, but for a worker that waits for other processes of its host. These wake it at
// once, which takes some microseconds. So where other programs want the processors, and keep one
// that is given away for a time slice, it polls for about as long as a wake-up takes, and sleeps:
// the kernel gives a thread that wakes up a processor sooner than one that has given it away.
//
//   IdleWait idle_wait(policy, IdleWait::For::processes);
//   while (!found()) idle_wait.wants_sleep() ? sleep() : idle_wait.step();
//
// Invariants: VGL1 for processes: while giving a processor away costs much, it wants to sleep after
//                 `policy.polls / brief` polls, or once the cost has risen as soon as that.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/waiting.h"

namespace tombolo::svp {

class IdleWait {
 public:
  using Cost = machine::YieldCost;
  // Of which it waits for work: workers of this process, or of other hosts, which wake none; or
  // processes of this host. To wake a worker costs a creator of its process as much as a hundred
  // families (steal_backoff.h).
  enum class For : std::uint8_t { workers, processes };
  // With the usual policy: 250 polls, some ten microseconds.
  static constexpr std::uint32_t brief = 8;

  IdleWait(const machine::WaitPolicy& policy, For others, Cost& cost = Cost::here())
      : waiter_(policy, nullptr, cost),
        cost_(cost),
        others_(others),
        between_(std::max(1u, policy.polls / brief)) {}

  void step() {
    (void)waiter_.step().ok();  // there is no idle hook that could fail
    // Seldom, since it asks a clock.
    if (others_ == For::processes && (++steps_ % between_ == 0 || !waiter_.polls()))
      costs_much_ = cost_.is_high(Cost::Clock::now());
  }

  // The next step is a poll.
  bool polls() const { return waiter_.polls() && !costs_much_; }
  bool wants_sleep() const { return waiter_.wants_sleep() || costs_much_; }

 private:
  machine::Waiter waiter_;
  Cost& cost_;
  For others_;
  bool costs_much_ = false;
  std::uint32_t between_;  // steps between two looks at the cost
  std::uint32_t steps_ = 0;
};

}  // namespace tombolo::svp
