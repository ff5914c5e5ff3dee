// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: BiasedTurns whose biased core enters without a
// look whether the bias was taken away meanwhile.
//
// The error: the turn that has taken it away may run at the same time.
// Thread safety: as BiasedTurns.
#pragma once

#include "svp/places/biased_turns.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct HastyBias : BiasedTurns<C> {
  using typename BiasedTurns<C>::Word;
  using typename BiasedTurns<C>::Number;
  using typename BiasedTurns<C>::Bias;

  template <class... Parts>
  static bool enter_by_bias(C& core, Word, const Bias& bias, Number, Number turn, Number& next,
                            Parts&&...) {
    next = 0;
    if (BiasedTurns<C>::is_in(core.load(bias.inside))) return false;
    core.store(bias.inside, turn + 1);
    return true;
  }
};

}  // namespace tombolo::svp::broken
