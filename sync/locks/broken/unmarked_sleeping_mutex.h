// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: SleepingMutex whose cores sleep without the
// mark (SMX2).
//
// The error: the holder's release wakes no core.
// Thread safety: as SleepingMutex.
#pragma once

#include "sync/locks/sleeping_mutex.h"

namespace tombolo::sync::broken {

template <machine::SleepsOnWords C>
class UnmarkedSleepingMutex : public SleepingMutex<C> {
 public:
  using Base = SleepingMutex<C>;
  using Base::Base;
  using typename Base::Word;

  Status acquire(Word word) {
    while (!this->try_acquire(word)) {
      const std::uint64_t v = this->core_.load(word);
      if (v != 0) TOMBOLO_TRY(this->core_.sleep_on(word, v));
    }
    return {};
  }
};

}  // namespace tombolo::sync::broken
