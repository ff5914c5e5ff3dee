// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only:
// WriteOnce whose end() looks for the next reader after it has delivered to the one before.
//
// The error: the word of that reader is its inbox's by then, and those behind it are lost.
// Thread safety: as WriteOnce.
#pragma once

#include "svp/channels/write_once.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct LateNext : WriteOnce<C> {
  using Base = WriteOnce<C>;
  using typename Base::Number;
  using typename Base::Words;

  template <class Link, class Await, class Deliver, class Changed>
  static void end(C& core, const Words& at, std::uint64_t how, Link&& link, Await&& await,
                  Deliver&& deliver, Changed&& changed) {
    Base::lock(core, at, await);
    Number reader = core.load(at.waiting);
    core.store(at.waiting, 0);
    core.fetch_add(at.state, how);
    for (; reader != 0; reader = core.load(link(reader))) deliver(reader);
    changed(core.load(at.listener));
    Base::unlock(core, at);
  }
};

}  // namespace tombolo::svp::broken
