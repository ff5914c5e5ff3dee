// SPDX-License-Identifier: Apache-2.0
// Purpose: a lock in one word of a program's memory, for words alone: it begins no span, and orders
// no loads and stores of pages.
// Waits: for the holder, in ProgramMemory::pause(). Not fair: it is held for tens of operations.
// Thread safety: one object for each thread.
#pragma once

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class WordLock {
 public:
  WordLock(ProgramMemory& memory, WordIndex word) : memory_(memory), word_(word) {}

  // An error if a process of the program has died, perhaps with the lock.
  Status acquire() {
    while (memory_.load(word_) != 0 || memory_.compare_exchange(word_, 0, holder()) != 0)
      TOMBOLO_TRY(memory_.pause());
    memory_.paused_enough();
    return {};
  }
  void release() { memory_.store(word_, 0); }

 private:
  std::uint64_t holder() const { return std::uint64_t{memory_.self()} + 1; }

  ProgramMemory& memory_;
  WordIndex word_;
};

}  // namespace tombolo::dsm
