// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only:
// WriteOnce whose unlist() does not say whether the reader was listed yet.
//
// The error: a stopped reader leaves while its delivery is on the way.
// Thread safety: as WriteOnce.
#pragma once

#include "svp/channels/write_once.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct HastyUnlist : WriteOnce<C> {
  using Base = WriteOnce<C>;
  using typename Base::Number;
  using typename Base::Words;

  template <class Link, class Await>
  static bool unlist(C& core, const Words& at, Number reader, Link&& link, Await&& await) {
    (void)Base::unlist(core, at, reader, link, await);
    return true;
  }
};

}  // namespace tombolo::svp::broken
