// SPDX-License-Identifier: Apache-2.0
// Purpose: the queue of an exclusive place that one core alone uses for a while: it is biased to
// that core, whose turns enter and leave by loads and stores, without an atomic operation (biased
// locks: Russell and Detlefs, OOPSLA 2006). The first other turn takes the bias away, by a fence
// in all cores, and the place is a queue as any other (turns.h) until the next bias.
//
//   last == 0                  a queue without turns
//   last == bias (odd)         biased: a turn is in the place or none, as `inside` says
//   last == turn               a queue with turns
//
// A bias has words of its own, used once: its core may store to `inside` late, when it was taken
// away and given to another core since. So a place has as many of these words as it may ever be
// biased.
//
// Invariants: BTU1 the bias is taken away by the exchange that enters a turn, so by one core; those
//                 that enter later are behind it.
//             BTU2 a core that stores `inside` looks for the bias afterwards, and the core that
//                 takes it away looks at `inside` after its exchange, with asymmetric fences
//                 between: one sees the other. If both do, they meet in `meeting`: the later of the
//                 two has the turn that took the bias away.
//             BTU3 `inside` is odd while a turn is in the place by the bias: its number and one.
//                 The core that leaves the turn makes it even. The biased core alone makes it odd.
//             BTU4 where a turn is in the place by a bias, the newest bias is the one.
//             BTU5 a core that has left a turn comes to the meeting only if the biased one has
//                 stored no other turn since.
// Memory: two sync words for each bias, 0 at first.
// Data: as Turns: a core publishes before it leaves a turn, and refreshes before it runs one.
// Thread safety: plain functions.
#pragma once

#include "machine/optional.h"
#include "svp/places/turns.h"

namespace tombolo::svp {

template <machine::FencesAsymmetrically C>
struct BiasedTurns : Turns<C> {
  using typename Turns<C>::Word;
  using typename Turns<C>::Number;  // of a turn: even

  struct Bias {
    Word inside;   // the turn that is in the place by this bias
    Word meeting;  // the turn that has taken it away, or `gone`
  };
  static constexpr Number gone = 1;
  static constexpr bool is_biased(Number last) { return last % 2 != 0; }
  static constexpr bool is_in(Number inside) { return inside % 2 != 0; }

  // ---- By a bias --------------------------------------------------------------------------------

  // By the biased core. `seen`: the bias, as found in `last`. False: the place has a turn, or the
  // bias has been taken away; the turn has not entered. `next` is then 0, or the first turn of the
  // queue, as leave() returns it.
  template <class Link, class Claim, class Await, class Drop>
  static bool enter_by_bias(C& core, Word last, const Bias& bias, Number seen, Number turn,
                            Number& next, Link&& link, Claim&& claim, Await&& await, Drop&& drop) {
    next = 0;
    if (is_in(core.load(bias.inside))) return false;  // BTU3
    core.store(bias.inside, turn + 1);
    core.fence_light();  // BTU2: the look that follows may not overtake the store
    if (core.load(last) == seen) [[likely]]
      return true;
    core.store(bias.inside, 0);
    next = meet(core, last, bias, link, claim, await, drop);
    return false;
  }
  // Leaves a turn that has entered so; by the core that has run it. As leave().
  template <class Link, class Claim, class Await, class Drop>
  static Number leave_by_bias(C& core, Word last, const Bias& bias, Number turn, Link&& link,
                              Claim&& claim, Await&& await, Drop&& drop) {
    core.store(bias.inside, turn);
    core.fence_light();  // BTU2
    if (is_biased(core.load(last))) [[likely]]
      return 0;
    return leave_late(core, last, bias, turn, link, claim, await, drop);
  }

  // ---- By others --------------------------------------------------------------------------------

  // As Turns::enter; `bias_of`: the words of a bias. The turn before may be one whose core
  // finds the bias gone, and enters again, behind this one.
  template <class BiasOf, class Link, class Claim>
  static Number enter(C& core, Word last, Number turn, BiasOf&& bias_of, Link&& link,
                      Claim&& claim) {
    const Number before = core.exchange(last, turn);
    if (is_biased(before)) return take_away(core, bias_of(before), turn, claim);
    if (before != 0)
      core.store(link(before), turn);
    else
      core.store(claim(turn), 1);  // TRN3
    return before;
  }

 protected:  // for a broken twin
  // The turn stays in `meeting` until the one inside leaves, or is the first.
  template <class Claim>
  [[gnu::noinline]] static Number take_away(C& core, const Bias& bias, Number turn, Claim& claim) {
    core.fence_heavy();  // BTU2: others see the exchange, or this core their store
    const Number inside = core.load(bias.inside);
    if (is_in(inside) && core.compare_exchange(bias.meeting, 0, turn) == 0) return inside - 1;
    core.store(claim(turn), 1);  // TRN3
    return 0;
  }
  template <class Link, class Claim, class Await, class Drop>
  [[gnu::noinline]] static Number leave_late(C& core, Word last, const Bias& bias, Number turn,
                                             Link& link, Claim& claim, Await& await, Drop& drop) {
    core.fence_heavy();  // BTU5: the biased core's next turn is seen, or it sees that it is late
    if (core.compare_exchange(bias.inside, turn, 0) != turn) return 0;
    return meet(core, last, bias, link, claim, await, drop);
  }
  // The bias has been taken away, and no turn is inside. Two cores may come here for one bias: that
  // which has left the last one, and the biased one whose next turn has come too late.
  template <class Link, class Claim, class Await, class Drop>
  [[gnu::noinline]] static Number meet(C& core, Word last, const Bias& bias, Link& link,
                                       Claim& claim, Await& await, Drop& drop) {
    const Number next = core.exchange(bias.meeting, gone);
    return next == gone ? 0 : Turns<C>::first_wanted(core, last, next, link, claim, await, drop);
  }
};

}  // namespace tombolo::svp
