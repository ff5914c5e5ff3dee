// SPDX-License-Identifier: Apache-2.0
// Purpose: how a core waits: poll briefly, then give the processor away, then sleep where the
// machine can. More cores than processors is a normal way to run, so nothing polls for long.
//
// The exception: each core has a processor, but other programs want it as well. They keep a
// processor that is given away for a whole time slice, so that cores that take turns at waiting
// would meet once in a slice. A core that has paid that lately polls for about a slice before it
// pays again.
//
//   Waiter waiter(policy, idle_hook);
//   while (!ready()) TOMBOLO_TRY(waiter.step());   // or sleep when waiter.wants_sleep()
//
// Invariants: WA1 between two calls of the idle hook a waiter gives the processor away at most
//                 `WaitPolicy::yields_per_idle` times, so a dead peer is noticed and other work of
//                 the process (the host MPI's progress) goes on while a core waits.
// Thread safety: a Waiter belongs to one thread; an IdleHook says its own.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/status.h"

namespace tombolo::machine {

// Called again and again while a core waits. A status that is not ok ends the wait with it.
class IdleHook {
 public:
  virtual ~IdleHook() = default;
  virtual Status idle() = 0;
};

struct WaitPolicy {
  std::uint32_t polls = 2000;         // polls before the processor is first given away
  std::uint32_t yields = 400;         // yields before the core asks to sleep
  std::uint32_t yields_per_idle = 8;  // one call of the idle hook in so many yields
  std::uint32_t sleep_us_max = 1000;  // longest single sleep, microseconds

  // Whether cores that poll for long keep no other core from its work.
  bool has_processor() const { return polls >= 1000; }

  // For `cores` cores on `processors` processors: with a processor each, poll for a few
  // microseconds; else hardly at all, since the core we wait for may need this processor.
  static WaitPolicy for_host(std::uint32_t cores, std::uint32_t processors) {
    WaitPolicy policy;
    if (cores > processors) policy.polls = 20;
    return policy;
  }
};

// Tells the processor that this is a polling loop.
inline void relax_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// The recent cost of giving the processor away.
class YieldCost {
 public:
  using Clock = std::chrono::steady_clock;
  // Longer than a call of the kernel and a short turn of another core of the same program.
  static constexpr std::chrono::microseconds high{100};
  // Some time slices.
  static constexpr std::chrono::milliseconds memory{200};

  // The processor was away from `start` to `end`.
  bool note(Clock::time_point start, Clock::time_point end) {
    if (end - start < high) return false;
    // relaxed (both): a hint, nothing is ordered by it.
    high_until_.store((end + memory).time_since_epoch().count(), std::memory_order_relaxed);
    return true;
  }
  bool is_high(Clock::time_point now) const {
    return now.time_since_epoch().count() < high_until_.load(std::memory_order_relaxed);
  }

  // That of this process.
  static YieldCost& here() {
    static constinit YieldCost cost;
    return cost;
  }

 private:
  std::atomic<Clock::rep> high_until_{0};
};

class Waiter {
 public:
  Waiter(const WaitPolicy& policy, IdleHook* hook, YieldCost& cost = YieldCost::here())
      : policy_(policy), hook_(hook), cost_(cost) {}

  // To be called after a poll that failed.
  Status step() {
    if (polls_ < policy_.polls) [[likely]] {
      // The first polls follow each other at once: a line arrives within some 100 ns, and one relax
      // instruction takes about as long on recent processors.
      if (++polls_ > immediate_polls) relax_processor();
      return {};
    }
    return step_after_polls();
  }

  // True as long as steps are polls, which do not give the processor away.
  bool polls() const { return polls_ < policy_.polls; }
  // True once the core has waited long enough for a sleep to cost less than going on.
  bool wants_sleep() const { return yields_ >= policy_.yields; }
  // Runs the idle hook; for callers that sleep between calls of step().
  Status idle() { return hook_ != nullptr ? hook_->idle() : Status{}; }
  const WaitPolicy& policy() const { return policy_; }

 private:
  static constexpr std::uint32_t immediate_polls = 100;
  // So often the polls of the policy are repeated while giving the processor away costs much: some
  // milliseconds, about a time slice.
  static constexpr std::uint32_t repeats_max = 32;

  // Not in line: the first polls are mostly enough.
  [[gnu::noinline]] Status step_after_polls() {
    const auto start = YieldCost::Clock::now();
    if (policy_.has_processor() && repeats_ < repeats_max && cost_.is_high(start)) {
      ++repeats_;
      polls_ = immediate_polls;
      return idle();
    }
    ++yields_;
    sched_yield();
    if (cost_.note(start, YieldCost::Clock::now())) {
      repeats_ = 0;
      if (policy_.has_processor()) polls_ = immediate_polls;
    }
    if (yields_ % policy_.yields_per_idle == 0) return idle();
    return {};
  }

  const WaitPolicy& policy_;
  IdleHook* hook_;
  YieldCost& cost_;
  std::uint32_t polls_ = 0;
  std::uint32_t repeats_ = 0;
  std::uint32_t yields_ = 0;
};

}  // namespace tombolo::machine
