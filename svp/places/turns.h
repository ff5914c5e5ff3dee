// SPDX-License-Identifier: Apache-2.0
// Purpose: the queue of an exclusive place: turns in the order of their enters (after the lock of
// Mellor-Crummey and Scott, TOCS 1991). Unlike there, the core that has ended a turn learns which
// one is the next, and may run it itself: a turn is work, not a core that waits.
//
// A turn behind others may be given up by its creator, whose family was stopped: it stays in the
// queue, and the core that leaves the turn before leaves it as well.
//
// Invariants: TRN1 `last` is 0, or the newest turn of the queue; each but the first is linked
//                 behind the one before it. Only the first is run.
//             TRN2 the words of a turn may be used again once it has been left: leave() accesses
//                 none but its own turn's and those of turns that were given up, and enter() that
//                 of the turn before, which has not been left as long as its link is missing.
//             TRN3 a turn is either taken, by the core that has left the one before it, or given
//                 up, by its creator: one exchange of its claim says which. One that enter() finds
//                 the first is taken from the start: no other core leaves one before it.
// Memory: a sync word for the queue, and two for each turn, 0 at its enter; wherever the caller has
// them. That of a claim is used for turns of enter() alone.
// Data: each turn sees the memory of those before it: a core publishes before leave() (R4), and
// refreshes before it runs a turn (R5).
// Thread safety: plain functions; leave() by the core that has run the first turn.
#pragma once

#include <cstdint>

#include "machine/contract.h"

namespace tombolo::svp {

// `link`, `claim`: the words of a turn, by its number.
template <machine::Core C>
struct Turns {
  using Word = typename C::Word;
  using Number = std::uint64_t;  // 0: none

  // False: the queue is not empty, and the turn has not entered it.
  static bool enter_if_empty(C& core, Word last, Number turn) {
    return core.compare_exchange(last, 0, turn) == 0;
  }
  // The turn before; 0: this one is the first, and is taken.
  template <class Link, class Claim>
  static Number enter(C& core, Word last, Number turn, Link&& link, Claim&& claim) {
    const Number before = core.exchange(last, turn);
    if (before != 0)
      core.store(link(before), turn);
    else
      core.store(claim(turn), 1);  // TRN3
    return before;
  }
  // By the creator of a turn that has entered by enter(). False: it was taken.
  static bool give_up(C& core, Word claim) { return core.exchange(claim, 1) == 0; }

  // The turn that is the first from now on, and is taken; 0: the queue is empty. `await`: until a
  // word is not 0. `drop`: turns that were given up, and have been left.
  template <class Link, class Claim, class Await, class Drop>
  static Number leave(C& core, Word last, Number turn, Link&& link, Claim&& claim, Await&& await,
                      Drop&& drop) {
    if (leave_alone(core, last, turn, link)) [[likely]]
      return 0;
    return leave_to_next(core, last, turn, link, claim, await, drop);
  }

 protected:  // for a broken twin
  template <class Link, class Await>
  static Number next_behind(C& core, Word last, Number turn, Link& link, Await& await) {
    return leave_alone(core, last, turn, link) ? 0 : linked_behind(core, turn, link, await);
  }

 private:
  // False: others are in the queue.
  template <class Link>
  static bool leave_alone(C& core, Word last, Number turn, Link& link) {
    return core.load(link(turn)) == 0 && core.compare_exchange(last, turn, 0) == turn;
  }
  template <class Link, class Await>
  static Number linked_behind(C& core, Number turn, Link& link, Await& await) {
    const Word next = link(turn);
    if (const Number linked = core.load(next); linked != 0) return linked;
    await(next);  // another core is between its exchange and its link
    return core.load(next);
  }
  // Apart: a queue with others in it is rare, and its creators' code is to be short.
  template <class Link, class Claim, class Await, class Drop>
  [[gnu::noinline]] static Number leave_to_next(C& core, Word last, Number turn, Link link,
                                                Claim claim, Await await, Drop drop) {
    Number next = linked_behind(core, turn, link, await);
    while (next != 0 && core.exchange(claim(next), 1) != 0) {
      const Number given_up = next;
      next = next_behind(core, last, given_up, link, await);
      drop(given_up);
    }
    return next;
  }
};

}  // namespace tombolo::svp
