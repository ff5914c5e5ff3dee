// SPDX-License-Identifier: Apache-2.0
// Purpose: a mutex that is one word and records its holder, as mutex.h has it, for sections of any
// length: a core that waits polls for a moment, and then sleeps on the word until the holder wakes
// it. (After Drepper, "Futexes Are Tricky", mutex 3.) The caller places the words; they start as
// zero.
//
//   SleepingMutex<C> mutex(core);
//   TOMBOLO_TRY(mutex.acquire(word));
//   ...
//   mutex.release(word);
//
// Uncontended: one compare_exchange, one exchange; no call of the host. Not fair: the next to ask
// after a release gets it.
//
// Invariants: SMX1 the word holds home + 1 of the holder, or 0, and the mark `wanted` beside a
//                  holder. Only a compare_exchange from 0 makes a holder, so there is at most one,
//                  and only the holder stores 0.
//             SMX2 a core sleeps only on a word that has the mark. A release that takes the mark
//                  away wakes one sleeper, which puts it back, with its own name or with that of
//                  a new holder: others may still sleep. So each sleeper is woken by a release,
//                  or is behind one that will be.
//             SMX3 a core that has begun to sleep and ends its wait with an error may have taken a
//                  wake-up with it: others sleep until their sleep's bound.
// Data: the exchange of release is ordered after everything that the holder published or drained
// (R4).
// Thread safety: one object per thread. The holder is a core, so two threads of one core exclude
// each other (SMX1 needs no more), but held() does not tell them apart.
#pragma once

#include "machine/optional.h"

namespace tombolo::sync {

template <machine::SleepsOnWords C>
class SleepingMutex {
 public:
  using Word = typename C::Word;
  // A poll takes some 50 ns. Giving the processor away without a sleep is no step between: it may
  // stay away for a time slice.
  static constexpr std::uint32_t usual_polls = 100;

  explicit SleepingMutex(C& core, std::uint32_t polls = usual_polls) : core_(core), polls_(polls) {}

  // Blocks. An error is the idle hook's; the mutex is not held then.
  Status acquire(Word word) {
    if (try_acquire(word)) [[likely]]
      return {};
    return wait(word);
  }

  bool try_acquire(Word word) { return core_.compare_exchange(word, 0, own_name()) == 0; }

  void release(Word word) {
    if ((core_.exchange(word, 0) & wanted) != 0) core_.wake_sleepers(word, 1);  // SMX2
  }

  // True if some core holds it now; `holder` names it.
  bool held(Word word, machine::Home& holder) {
    const std::uint64_t v = core_.load(word) & ~wanted;
    if (v != 0) holder = static_cast<machine::Home>(v - 1);
    return v != 0;
  }

 protected:  // for a broken twin
  // The mark lies in the half of the word by which cores sleep.
  static constexpr std::uint64_t wanted = std::uint64_t{1} << 31;

  std::uint64_t own_name() const { return std::uint64_t{core_.self()} + 1; }
  // Polls by load: a failed compare_exchange would take the line from the holder.
  bool taken_by_polling(Word word) {
    for (std::uint32_t i = 0; i < polls_; ++i) {
      machine::relax_processor();
      if (core_.load(word) == 0 && try_acquire(word)) return true;
    }
    return false;
  }
  // The word has the mark, and held `v` before.
  bool mark(Word word, std::uint64_t v) {
    return (v & wanted) != 0 || core_.compare_exchange(word, v, v | wanted) == v;
  }

  C& core_;

 private:
  [[gnu::noinline]] Status wait(Word word) {
    if (taken_by_polling(word)) return {};
    for (;;) {
      const std::uint64_t v = core_.load(word);
      if (v == 0) {
        if (core_.compare_exchange(word, 0, own_name() | wanted) == 0) return {};  // SMX2
      } else if (mark(word, v)) {
        TOMBOLO_TRY(core_.sleep_on(word, v | wanted));
      }
    }
  }

  std::uint32_t polls_;
};

}  // namespace tombolo::sync
