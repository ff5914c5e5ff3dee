// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: Turns whose enter() does not take the claim of
// a turn that it finds the first.
//
// The error: its creator may give it up, and be gone while its family runs.
// Thread safety: as Turns.
#pragma once

#include "svp/places/turns.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct UnclaimedTurns : Turns<C> {
  using typename Turns<C>::Word;
  using typename Turns<C>::Number;

  template <class Link, class Claim>
  static Number enter(C& core, Word last, Number turn, Link&& link, Claim&&) {
    const Number before = core.exchange(last, turn);
    if (before != 0) core.store(link(before), turn);
    return before;
  }
};

}  // namespace tombolo::svp::broken
