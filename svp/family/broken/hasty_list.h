// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only:
// WriteOnce whose list() does not look whether the channel has ended.
//
// The error: a reader waits for an end that was before it.
// Thread safety: as WriteOnce.
#pragma once

#include "svp/channels/write_once.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct HastyList : WriteOnce<C> {
  using Base = WriteOnce<C>;
  using typename Base::Number;
  using typename Base::Words;

  template <class Link, class Await, class Changed>
  static bool list(C& core, const Words& at, Number reader, Link&& link, Await&& await,
                   Changed&& changed) {
    Base::lock(core, at, await);
    core.store(link(reader), core.load(at.waiting));
    core.store(at.waiting, reader);
    changed(core.load(at.listener));
    Base::unlock(core, at);
    return true;
  }
};

}  // namespace tombolo::svp::broken
