// SPDX-License-Identifier: Apache-2.0
// Purpose: a mutex that is one word and records its holder, for short critical sections on words
// anywhere. The caller places the words; they start as zero.
//
//   SpinMutex<C> mutex(core);
//   TOMBOLO_TRY(mutex.acquire(word));
//   ...
//   mutex.release(word);
//
// Uncontended: one compare_exchange, one store. Not fair: the next to ask after a release gets it.
//
// Invariants: MX1 the word holds home + 1 of the holder, or 0. Only a compare_exchange from 0 makes
//                 a holder, so there is at most one; only the holder stores 0.
//             MX2 release may be a plain store although others try to compare_exchange: theirs
//                 expect 0, so they write nothing while there is a holder, also where the machine
//                 builds compare_exchange from loads and stores under a lock of its own.
// Data: release is a store, ordered after everything that the holder published or drained (R4).
// Thread safety: one object per thread. The holder is a core, so two threads of one core exclude
// each other (MX1 needs no more), but holder() does not tell them apart.
#pragma once

#include "machine/contract.h"
#include "sync/locks/backoff.h"

namespace tombolo::sync {

template <machine::Core C>
class SpinMutex {
 public:
  using Word = typename C::Word;

  explicit SpinMutex(C& core, const LockOptions& options = {.backoff_first_ns = 100,
                                                            .backoff_max_ns = 20'000})
      : core_(core), options_(options) {}

  // Blocks. An error is the idle hook's; the mutex is not held then.
  Status acquire(Word word) {
    if (core_.compare_exchange(word, 0, self()) == 0) [[likely]]
      return {};
    return wait(word);
  }

  bool try_acquire(Word word) { return core_.compare_exchange(word, 0, self()) == 0; }

  void release(Word word) { core_.store(word, 0); }

  // True if some core holds it now; `holder` names it.
  bool held(Word word, machine::Home& holder) {
    const std::uint64_t v = core_.load(word);
    if (v != 0) holder = static_cast<machine::Home>(v - 1);
    return v != 0;
  }

 private:
  std::uint64_t self() const { return std::uint64_t{core_.self()} + 1; }

  Status wait(Word word) {
    Backoff<C> backoff(core_, options_);
    do {
      // Polls by load: a failed compare_exchange would take the line from the holder.
      while (core_.load(word) != 0) TOMBOLO_TRY(backoff.pause());
    } while (core_.compare_exchange(word, 0, self()) != 0);
    return {};
  }

  C& core_;
  LockOptions options_;
};

}  // namespace tombolo::sync
