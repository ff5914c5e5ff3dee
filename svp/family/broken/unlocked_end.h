// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: WriteOnce whose end() takes no lock.
//
// The error: a reader lists itself between the look at the list and the store that empties it.
// Thread safety: as WriteOnce.
#pragma once

#include "svp/channels/write_once.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct UnlockedEnd : WriteOnce<C> {
  using Base = WriteOnce<C>;
  using typename Base::Number;
  using typename Base::Words;

  template <class Link, class Await, class Deliver, class Changed>
  static void end(C& core, const Words& at, std::uint64_t how, Link&& link, Await&&,
                  Deliver&& deliver, Changed&& changed) {
    Base::end_locked(core, at, how, link, deliver, changed);
  }
};

}  // namespace tombolo::svp::broken
