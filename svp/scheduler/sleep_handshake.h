// SPDX-License-Identifier: Apache-2.0
// Purpose: how a core that goes to sleep and a core that stores the word which the first one waits
// for do not miss each other, where the second is not to wake a core that is up: a wake-up costs
// more than the end of a short task.
//
// Invariants: SLU1 the sleeper announces its sleep before it looks for the last time, and a waker
//                 looks for the announcement after its store, with a fence between on both sides:
//                 one of the two sees the other (R3).
//             SLU2 each announced sleep is taken by one waker.
// Data: none.
// Thread safety: plain functions.
#pragma once

#include "machine/contract.h"

namespace tombolo::svp {

template <machine::Core C>
struct SleepHandshake {
  using Word = typename C::Word;

  // The sleeper: then it looks, and sleeps if there is nothing, until it is woken.
  static void announce(C& core, Word asleep) {
    core.store(asleep, 1);
    core.fence();  // SLU1: the look that follows may not overtake the store
  }
  // The sleeper is up.
  static void end(C& core, Word asleep) { core.store(asleep, 0); }
  // A waker, after its store. True: it wakes the sleeper.
  static bool must_wake(C& core, Word asleep) {
    core.fence();  // SLU1: nor may this look the store before it
    return core.load(asleep) != 0 && core.exchange(asleep, 0) != 0;
  }
};

}  // namespace tombolo::svp
