// SPDX-License-Identifier: Apache-2.0
// Purpose: a word for whose changes any number of cores, of any home, may sleep. Each change wakes
// them all, and costs a load more than an atomic operation where none sleeps.
//
//   WatchedWord<C> word(core, at, sleepers);
//   for (std::uint64_t seen = word.load(); !ready(seen); seen = word.load())
//     TOMBOLO_TRY(word.sleep(seen));
//   ...
//   word.store(1);   // another core
//
// Invariants: WWD1 a sleeper counts itself before it looks for the last time, which sleep_on()
//                  does, and a change looks at the count after it is made. Both are atomic
//                  operations, so that neither look overtakes them (R3): one of the two sees the
//                  other.
//             WWD2 words may share a count. A change of one then asks the host in vain to wake
//                  those that sleep on another.
// Memory: the word, and a word for the count; the caller places them, zero at first.
// Data: none.
// Thread safety: one object for each thread.
#pragma once

#include "machine/optional.h"

namespace tombolo::sync {

template <machine::SleepsOnWords C>
class WatchedWord {
 public:
  using Word = typename C::Word;

  WatchedWord(C& core, Word word, Word sleepers) : core_(core), word_(word), sleepers_(sleepers) {}

  std::uint64_t load() { return core_.load(word_); }
  // An atomic operation: the look for sleepers may not overtake it (WWD1).
  void store(std::uint64_t v) { exchange(v); }
  // The former value.
  std::uint64_t exchange(std::uint64_t v) {
    const std::uint64_t before = core_.exchange(word_, v);
    changed();
    return before;
  }
  std::uint64_t fetch_add(std::uint64_t v) {
    const std::uint64_t before = core_.fetch_add(word_, v);
    changed();
    return before;
  }
  std::uint64_t compare_exchange(std::uint64_t expected, std::uint64_t desired) {
    const std::uint64_t before = core_.compare_exchange(word_, expected, desired);
    if (before == expected) changed();
    return before;
  }

  // Until the word has changed from `seen`; may end early, as sleep_on().
  Status sleep(std::uint64_t seen) {
    core_.fetch_add(sleepers_, 1);  // WWD1
    Status status = core_.sleep_on(word_, seen);
    core_.fetch_add(sleepers_, ~std::uint64_t{0});
    return status;
  }

 protected:  // for a broken twin
  void changed() {
    if (core_.load(sleepers_) != 0) [[unlikely]]
      core_.wake_sleepers(word_, machine::all_sleepers);
  }

  C& core_;
  Word word_;
  Word sleepers_;
};

}  // namespace tombolo::sync
