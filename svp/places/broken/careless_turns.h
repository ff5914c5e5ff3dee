// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Turns whose leave() takes the next turn without
// a look at its claim.
//
// The error: its creator may have given it up, and be gone.
// Thread safety: as Turns.
#pragma once

#include "svp/places/turns.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct CarelessTurns : Turns<C> {
  using typename Turns<C>::Word;
  using typename Turns<C>::Number;

  template <class Link, class Claim, class Await, class Drop>
  static Number leave(C& core, Word last, Number turn, Link&& link, Claim&&, Await&& await,
                      Drop&&) {
    return Turns<C>::next_behind(core, last, turn, link, await);
  }
};

}  // namespace tombolo::svp::broken
