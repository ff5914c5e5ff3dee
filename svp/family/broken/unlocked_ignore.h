// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: WriteOnce whose ignore() takes no lock.
//
// The error: the listener leaves while it is being told.
// Thread safety: as WriteOnce.
#pragma once

#include "svp/channels/write_once.h"

namespace tombolo::svp::broken {

template <machine::Core C>
struct UnlockedIgnore : WriteOnce<C> {
  using Base = WriteOnce<C>;
  using typename Base::Number;
  using typename Base::Words;

  template <class Await>
  static void ignore(C& core, const Words& at, Await&&) {
    core.store(at.listener, 0);
  }
};

}  // namespace tombolo::svp::broken
