// SPDX-License-Identifier: Apache-2.0
// Purpose: how a core waits: poll briefly, then give the processor away, then sleep where the
// machine can. More cores than processors is a normal way to run, so nothing polls for long.
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

class Waiter {
 public:
  Waiter(const WaitPolicy& policy, IdleHook* hook) : policy_(policy), hook_(hook) {}

  // To be called after a poll that failed.
  Status step() {
    if (polls_ < policy_.polls) [[likely]] {
      // The first polls follow each other at once: a line arrives within some 100 ns, and one relax
      // instruction takes about as long on recent processors.
      if (++polls_ > immediate_polls) relax_processor();
      return {};
    }
    ++yields_;
    sched_yield();
    if (hook_ != nullptr && yields_ % policy_.yields_per_idle == 0) return hook_->idle();
    return {};
  }

  // True once the core has waited long enough for a sleep to cost less than going on.
  bool wants_sleep() const { return yields_ >= policy_.yields; }
  // Runs the idle hook; for callers that sleep between calls of step().
  Status idle() { return hook_ != nullptr ? hook_->idle() : Status{}; }
  const WaitPolicy& policy() const { return policy_; }

 private:
  static constexpr std::uint32_t immediate_polls = 100;
  const WaitPolicy& policy_;
  IdleHook* hook_;
  std::uint32_t polls_ = 0;
  std::uint32_t yields_ = 0;
};

}  // namespace tombolo::machine
