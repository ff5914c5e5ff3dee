// SPDX-License-Identifier: Apache-2.0
// Purpose: Lamport's bakery lock (CACM 17:8, 1974) over sync words of a machine that can only load,
// store and fence. One lock at each home; first come, first served.
//
//   Bakery<Base> bakery(base, first_byte, waiting, idle);   // the same first_byte in every core
//   bakery.acquire(home);  ...  bakery.release(home);
//
//   away --doorway()--> waiting --all before have left: await_turn()--> inside --release()--> away
//
// Memory: 1 word for each core and lock, hence n words at each of n homes. Lamport's two variables
// (choosing, number) share the word, which is written in one piece: away 0, choosing 1, number 2...
// Each word has one writer. An idle lock is all zeros.
//
// Invariants: BK1 a core is inside only if no other core has a smaller (number, core).
//             BK2 no core passes a core that is choosing: it may be about to take a smaller number.
//             BK3 numbers grow only while the lock is never idle: 2^64 is not reached.
//             BK4 if the idle hook reports an error while a core waits (the holder of the lock may
//                 be dead), the core goes on as if it had the lock, so that it can report it:
//                 error() holds it from then on. Exclusion is lost with the program.
// Thread safety: as a core, one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "machine/place.h"
#include "machine/waiting.h"

namespace tombolo::machine {

template <class Base>
class Bakery {
 public:
  static std::size_t bytes(Home cores) { return std::size_t{cores} * sizeof(std::uint64_t); }

  Bakery(Base& base, Offset first, const WaitPolicy& waiting, IdleHook* idle)
      : base_(base), first_(first), waiting_(waiting), idle_(idle) {}

  void acquire(Home home) {
    const std::uint64_t mine = doorway(home);
    for (Home other = 0; other < base_.cores(); ++other)
      if (other != base_.self()) await_turn(home, other, mine);
    // The last holder's stores were in memory before it left (release), and our loads come after
    // our load of its number: the machine keeps loads in order (R3).
  }

  void release(Home home) {
    // Stores go to memory in program order (R3): those made inside are there before this one.
    base_.store(word(home, base_.self()), away);
  }

  const Status& error() const { return error_; }

 private:
  static constexpr std::uint64_t away = 0;
  static constexpr std::uint64_t choosing = 1;
  static constexpr std::uint64_t first_number = 2;

  auto word(Home home, Home core) {
    return base_.word({home, first_ + core * sizeof(std::uint64_t)});
  }

  std::uint64_t doorway(Home home) {
    const Home self = base_.self();
    base_.store(word(home, self), choosing);
    base_.fence();  // BK2: "choosing" is in memory before we look at the numbers
    std::uint64_t mine = first_number;
    for (Home other = 0; other < base_.cores(); ++other)
      if (other != self) mine = std::max(mine, base_.load(word(home, other)) + 1);
    base_.store(word(home, self), mine);
    base_.fence();  // our number is in memory before we look whether others have one
    return mine;
  }

  // Once our number is in memory, `other` can only take a larger one: it makes us wait for the
  // number it had when we looked, and at most once more while it is choosing.
  void await_turn(Home home, Home other, std::uint64_t mine) {
    wait_while([&] {
      const std::uint64_t theirs = base_.load(word(home, other));
      // "choosing" is smaller than any number (BK2).
      return theirs != away && std::pair(theirs, other) < std::pair(mine, base_.self());
    });
  }

  template <class Condition>
  void wait_while(Condition&& condition) {
    if (!condition() || !error_.ok()) return;
    Waiter waiter(waiting_, idle_);
    while (error_.ok() && condition()) error_ = waiter.step();
  }

  Base& base_;
  Offset first_;
  const WaitPolicy& waiting_;
  IdleHook* idle_;
  Status error_;  // BK4
};

}  // namespace tombolo::machine
