// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: SleepingMutex whose woken cores take the lock
// without the mark for others (SMX2).
//
// The error: of two that sleep one is woken and takes the lock. Its release finds no mark, and
// wakes no core: the other one sleeps for ever.
// Thread safety: as SleepingMutex.
#pragma once

#include "sync/locks/sleeping_mutex.h"

namespace tombolo::sync::broken {

template <machine::SleepsOnWords C>
class ForgetfulSleepingMutex : public SleepingMutex<C> {
 public:
  using Base = SleepingMutex<C>;
  using Base::Base;
  using typename Base::Word;

  Status acquire(Word word) {
    while (!this->try_acquire(word)) {
      const std::uint64_t v = this->core_.load(word);
      if (v != 0 && this->mark(word, v)) TOMBOLO_TRY(this->core_.sleep_on(word, v | Base::wanted));
    }
    return {};
  }
};

}  // namespace tombolo::sync::broken
