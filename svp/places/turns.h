// SPDX-License-Identifier: Apache-2.0
// Purpose: the queue of an exclusive place: turns in the order of their enters (after the lock of
// Mellor-Crummey and Scott, TOCS 1991). Unlike there, the core that has ended a turn learns which
// one is the next, and may run it itself: a turn is work, not a core that waits.
//
// Invariants: TRN1 `last` is 0, or the newest turn of the queue; each but the first is linked
//                 behind the one before it. Only the first is run.
//             TRN2 the word of a turn may be used again once it has been left: leave() accesses
//                 none but its own turn's, and enter() that of the turn before, which has not been
//                 left as long as its link is missing.
// Memory: a sync word for the queue, and one for each turn, 0 at its enter; wherever the caller has
// them.
// Data: each turn sees the memory of those before it: a core publishes before leave() (R4), and
// refreshes before it runs a turn (R5).
// Thread safety: plain functions; leave() by the core that has run the first turn.
#pragma once

#include <cstdint>

#include "machine/contract.h"

namespace tombolo::svp {

// `link`: the word of a turn, by its number.
template <machine::Core C>
struct Turns {
  using Word = typename C::Word;
  using Number = std::uint64_t;  // 0: none

  // The turn before; 0: this one is the first.
  template <class Link>
  static Number enter(C& core, Word last, Number turn, Link&& link) {
    const Number before = core.exchange(last, turn);
    if (before != 0) core.store(link(before), turn);
    return before;
  }
  // The turn that is the first from now on; 0: the queue is empty. `await`: until a word is not 0.
  template <class Link, class Await>
  static Number leave(C& core, Word last, Number turn, Link&& link, Await&& await) {
    const Word next = link(turn);
    if (const Number linked = core.load(next); linked != 0) return linked;
    if (core.compare_exchange(last, turn, 0) == turn) return 0;
    await(next);  // another core is between its exchange and its link
    return core.load(next);
  }
};

}  // namespace tombolo::svp
