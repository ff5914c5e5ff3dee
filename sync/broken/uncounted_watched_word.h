// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: WatchedWord whose sleepers count themselves
// after their last look (WWD1).
//
// The error: they sleep, and are not counted: a change wakes no core.
// Thread safety: as WatchedWord.
#pragma once

#include "sync/watched_word.h"

namespace tombolo::sync::broken {

template <machine::SleepsOnWords C>
class UncountedWatchedWord : public WatchedWord<C> {
 public:
  using Base = WatchedWord<C>;
  using Base::Base;

  Status sleep(std::uint64_t seen) {
    Status status = this->core_.sleep_on(this->word_, seen);
    this->core_.fetch_add(this->sleepers_, 1);
    this->core_.fetch_add(this->sleepers_, ~std::uint64_t{0});
    return status;
  }
};

}  // namespace tombolo::sync::broken
