// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: WatchedWord whose changes look for sleepers
// before they are made (WWD1).
//
// The error: a core counts itself and sleeps in between, and no other core wakes it.
// Thread safety: as WatchedWord.
#pragma once

#include "sync/watched_word.h"

namespace tombolo::sync::broken {

template <machine::SleepsOnWords C>
class HastyWatchedWord : public WatchedWord<C> {
 public:
  using Base = WatchedWord<C>;
  using Base::Base;

  std::uint64_t fetch_add(std::uint64_t v) {
    this->changed();
    return this->core_.fetch_add(this->word_, v);
  }
};

}  // namespace tombolo::sync::broken
