// SPDX-License-Identifier: Apache-2.0
// Purpose: a barrier of some of the threads, over a word of the program (003 tables 5.2 and 5.4: a
// barrier is created with the number of its threads). The stores of each before it, in spans and
// outside of them, are seen by all of them after it (rule 3 of section 3.2, for those that take
// part).
//
// Per wait: an atomic, loads, and the changes of this thread. The word is polled at its home,
// where the barrier of all threads waits on words of its own.
//
// Invariants: DPB1 the word counts arrivals, and never goes back: arrival i belongs to round
//                  i / threads. A thread that is at the next round already does no harm to one that
//                  has yet to leave this one.
//             DPB2 a thread arrives after it has told its stores, and learns those of others when
//                  all have arrived.
// Thread safety: one thread for each object; the word is all threads'.
#pragma once

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class PartialBarrier {
 public:
  static constexpr WordIndex words_needed = 1;

  // The word is the barrier's, zero at first; `threads`: as many, of whichever number, meet in each
  // round.
  PartialBarrier(ProgramMemory& memory, WordIndex word, Thread threads)
      : memory_(memory), word_(word), threads_(threads) {}

  // Outside of spans.
  Status wait() {
    TOMBOLO_TRY(memory_.tell());
    const std::uint64_t arrival = memory_.fetch_add(word_, 1);
    const std::uint64_t all = (arrival / threads_ + 1) * threads_;
    while (memory_.load(word_) < all) TOMBOLO_TRY(memory_.pause());
    memory_.paused_enough();
    return memory_.learn();
  }

 private:
  ProgramMemory& memory_;
  WordIndex word_;
  Thread threads_;
};

}  // namespace tombolo::dsm
