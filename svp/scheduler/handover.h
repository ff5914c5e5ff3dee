// SPDX-License-Identifier: Apache-2.0
// Purpose: the word by which a core that has taken a task tells the task's creator who runs it, and
// that it is done. The word is at the creator's home.
//
// Invariants: VHO1 the word is 0 until the task is taken, then the taker's home + 1, then `done`.
//                 Only the taker stores to it.
// Data: memory is consistent at create and at sync (002 chapter 3). create: the creator publishes
// before the deque shares the task (R4), the taker refreshes after it has taken it (R5). sync: the
// taker publishes before finish(), the creator refreshes after done() (R4, R5). A task that its
// creator takes back needs none of it.
// Thread safety: plain functions.
#pragma once

#include "machine/contract.h"

namespace tombolo::svp {

template <machine::Core C>
struct Handover {
  using Word = typename C::Word;
  static constexpr std::uint64_t untaken = 0;
  static constexpr std::uint64_t done_value = ~std::uint64_t{0};

  static void begin(C& core, Word word) { core.store(word, std::uint64_t{core.self()} + 1); }
  static void finish(C& core, Word word) { core.store(word, done_value); }
  static bool done(C& core, Word word) { return core.load(word) == done_value; }
  // True if a core has taken the task and is at work; `taker` is its home.
  static bool taken(C& core, Word word, machine::Home& taker) {
    const std::uint64_t v = core.load(word);
    if (v == untaken || v == done_value) return false;
    taker = static_cast<machine::Home>(v - 1);
    return true;
  }
};

}  // namespace tombolo::svp
