// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only:
// WriteOnce whose close() ends the channel without a claim of its own.
//
// The error: the channel of a writer is closed, and has a value all the same.
// Thread safety: as WriteOnce.
#pragma once

#include "svp/channels/write_once.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct UnclaimedClose : WriteOnce<C> {
  using Base = WriteOnce<C>;
  using typename Base::Number;
  using typename Base::Words;

  template <class Link, class Await, class Deliver, class Changed>
  static void close(C& core, const Words& at, Link&& link, Await&& await, Deliver&& deliver,
                    Changed&& changed) {
    (void)Base::claim(core, at);
    Base::end(core, at, Base::closed, link, await, deliver, changed);
  }
};

}  // namespace tombolo::svp::broken
