// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: BiasedTurns whose leaving core, which finds the
// bias gone, takes the turn that waits without a look whether a later one is inside.
//
// The error: the biased core's next turn may have entered, and the turn waits behind that.
// Thread safety: as BiasedTurns.
#pragma once

#include "svp/places/biased_turns.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct LateLeave : BiasedTurns<C> {
  using typename BiasedTurns<C>::Word;
  using typename BiasedTurns<C>::Number;
  using typename BiasedTurns<C>::Bias;

  template <class Link, class Claim, class Await, class Drop>
  static Number leave_by_bias(C& core, Word last, const Bias& bias, Number turn, Link&& link,
                              Claim&& claim, Await&& await, Drop&& drop) {
    core.store(bias.inside, turn);
    if (BiasedTurns<C>::is_biased(core.load(last))) return 0;
    return BiasedTurns<C>::meet(core, last, bias, link, claim, await, drop);
  }
};

}  // namespace tombolo::svp::broken
