// SPDX-License-Identifier: Apache-2.0
// Purpose: condition variables over two words of the program: threads take a number when they begin
// to wait, and are called by number.
//
// Invariants: DCV1 a thread waits for its own number alone: the longest waiter is woken first, and
//                  none without a signal.
//             DCV2 a number is taken before the lock is given back: a signal by the lock's next
//                  holder, or a later one, is for it.
// Per wait: an atomic, and loads; per signal: two loads and an atomic.
// Thread safety: one thread for each object; the words are all threads'.
#pragma once

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class Condition {
 public:
  static constexpr WordIndex words_needed = 2;

  // Words `first` and the next are the condition's, zero at first.
  Condition(ProgramMemory& memory, WordIndex first) : memory_(memory), first_(first) {}

  // By the holder of the lock, which it holds again afterwards.
  Status wait(Lock lock) {
    const std::uint64_t number = memory_.fetch_add(taken(), 1);
    TOMBOLO_TRY(memory_.release(lock));
    while (memory_.load(called()) <= number) TOMBOLO_TRY(memory_.pause());
    memory_.paused_enough();
    return memory_.acquire(lock);
  }

  // Wakes the thread that waits for longest, if one waits.
  void signal() {
    call([](std::uint64_t called, std::uint64_t) { return called + 1; });
  }
  // Wakes all that wait.
  void broadcast() {
    call([](std::uint64_t, std::uint64_t taken) { return taken; });
  }

 private:
  WordIndex taken() const { return first_; }
  WordIndex called() const { return first_ + 1; }

  template <class Next>
  void call(Next&& next) {
    std::uint64_t now = memory_.load(called());
    for (;;) {
      const std::uint64_t taken_now = memory_.load(taken());
      if (now >= taken_now) return;
      const std::uint64_t before = memory_.compare_exchange(called(), now, next(now, taken_now));
      if (before == now) return;
      now = before;  // another thread has called
    }
  }

  ProgramMemory& memory_;
  WordIndex first_;
};

}  // namespace tombolo::dsm
