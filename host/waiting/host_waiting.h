// SPDX-License-Identifier: Apache-2.0
// Purpose: wait_until, pause and notify of the machine contract for cores that are threads or
// processes of one host.
// Thread safety: stateless but for the doorbells, which are safe.
#pragma once

#include <chrono>
#include <thread>

#include "host/waiting/doorbell.h"
#include "machine/waiting.h"

namespace tombolo::host {

// Polls ready() until it is true: spins, yields, then sleeps on `bell`.
template <class Ready>
Status wait(const machine::WaitPolicy& policy, machine::IdleHook* hook, Doorbell& bell,
            Ready&& ready) {
  if (ready()) [[likely]]
    return {};
  machine::Waiter waiter(policy, hook);
  while (!ready()) {
    Status error;
    if (waiter.wants_sleep()) {
      bell.sleep(policy.sleep_us_max, ready);
      error = waiter.idle();
    } else {
      error = waiter.step();
    }
    // A peer that has ended since the last look may have done its part before.
    if (!error.ok()) [[unlikely]]
      return ready() ? Status{} : error;
  }
  return {};
}

// Lets about `nanoseconds` pass. With more cores than processors the processor is given away at
// once: the core that we wait for may need it.
inline Status pause(const machine::WaitPolicy& policy, machine::IdleHook* hook,
                    std::uint64_t nanoseconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t sleep_from_ns = 50000;
  constexpr std::uint64_t idle_from_ns = 4000;
  if (!policy.has_processor()) {
    sched_yield();
  } else if (nanoseconds < sleep_from_ns) {
    const auto end = Clock::now() + std::chrono::nanoseconds(nanoseconds);
    while (Clock::now() < end) machine::relax_processor();
  }
  if (nanoseconds >= sleep_from_ns)
    std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  if (hook != nullptr && nanoseconds >= idle_from_ns) return hook->idle();
  return {};
}

}  // namespace tombolo::host
