// SPDX-License-Identifier: Apache-2.0
// Purpose: exponential back-off between attempts on words of other homes (001 section 4.2), the one
// way to wait where R6 rules out wait_until.
//
// Invariants: BF1 the pauses of one wait double from `backoff_first_ns` up to `backoff_max_ns`.
//                 Each is drawn from the upper half of its length: two cores that stepped back for
//                 each other do not meet again in step.
//             BF2 without back-off, one pause in `steps_per_idle` is long enough for a machine to
//                 run the idle hook, so that a dead holder is noticed.
// Thread safety: one object per thread.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "machine/contract.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::sync {

template <machine::Core C>
class Backoff {
 public:
  // `wait`: the number of the wait, for callers that make a new object for each.
  Backoff(C& core, const LockOptions& options, std::uint64_t wait = 0)
      : core_(core),
        options_(options),
        random_(Random::stream(stream_of_backoff + wait, core.self())) {}

  // To be called when a wait begins.
  void reset() { steps_ = 0; }

  Status pause() { return core_.pause(next_ns()); }
  // The length of the next pause, for callers that make it themselves.
  std::uint64_t next_ns() {
    ++steps_;
    if (!options_.backoff) return steps_ % steps_per_idle == 0 ? idle_pause_ns : 0;
    const std::uint64_t shift = std::min<std::uint64_t>(steps_ - 1, 32);
    const std::uint64_t ns = std::min(options_.backoff_first_ns << shift, options_.backoff_max_ns);
    return ns - random_.below(ns / 2 + 1);
  }

 private:
  static constexpr std::uint64_t stream_of_backoff = 0x6261636b6f6666;
  static constexpr std::uint64_t steps_per_idle = 64;
  static constexpr std::uint64_t idle_pause_ns = 5000;

  C& core_;
  LockOptions options_;
  Random random_;
  std::uint64_t steps_ = 0;
};

}  // namespace tombolo::sync
