// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Turns whose leave() empties the queue where no
// link is to be seen.
//
// The error: another core may be between its exchange and its link; its turn never comes.
// Thread safety: as Turns.
#pragma once

#include "svp/places/turns.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct HastyTurns : Turns<C> {
  using typename Turns<C>::Word;
  using typename Turns<C>::Number;

  template <class Link, class Claim, class Await, class Drop>
  static Number leave(C& core, Word last, Number turn, Link&& link, Claim&&, Await&&, Drop&&) {
    if (const Number linked = core.load(link(turn)); linked != 0) return linked;
    core.exchange(last, 0);
    return 0;
  }
};

}  // namespace tombolo::svp::broken
