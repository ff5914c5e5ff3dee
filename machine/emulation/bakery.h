// SPDX-License-Identifier: Apache-2.0
// Purpose: Lamport's bakery lock (CACM 17:8, 1974) over sync words of a machine that can only load,
// store and fence. One lock at each home; first come, first served.
//
//   Bakery<Base> bakery(base, first_byte);       // the same first_byte in every core
//   bakery.acquire(home);  ...  bakery.release(home);
//
//   away --take a number: doorway()--> waiting --all before me left: await_turn()--> inside
//   inside --release()--> away
//
// Memory: 2 words for each core and lock (choosing, number), hence 2n words at each of n homes.
// Each word has one writer. An idle lock is all zeros.
//
// Invariants: B1 a core is inside only if no other core has a smaller (number, core), 0 being none.
//             B2 a core with choosing == 1 has not decided on its number; nobody passes it.
//             B3 numbers grow only while the lock is never idle: 2^64 is not reached.
//             B4 if the idle hook reports a fault while a core waits (whoever holds the lock may be
//                dead), the core goes on as if it had the lock, so that it can report the fault:
//                fault() holds it from then on. Exclusion is lost with the program.
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
  static std::size_t bytes(Home cores) { return std::size_t{cores} * 2 * sizeof(std::uint64_t); }

  Bakery(Base& base, Offset first, const WaitPolicy& waiting, IdleHook* idle)
      : base_(base), first_(first), waiting_(waiting), idle_(idle) {}

  void acquire(Home home) {
    const std::uint64_t mine = doorway(home);
    for (Home other = 0; other < base_.cores(); ++other)
      if (other != base_.self()) await_turn(home, other, mine);
    // What the last holder stored was in memory before it left (release), and our loads come after
    // our load of its number: the machine keeps loads in order (R3).
  }

  void release(Home home) {
    // Stores go to memory in program order (R3): those made inside are there before this one.
    base_.store(number(home, base_.self()), 0);
  }

  const Status& fault() const { return fault_; }

 private:
  auto choosing(Home home, Home core) {
    return base_.word({home, first_ + core * 2 * sizeof(std::uint64_t)});
  }
  auto number(Home home, Home core) {
    return base_.word({home, first_ + (core * 2 + 1) * sizeof(std::uint64_t)});
  }

  std::uint64_t doorway(Home home) {
    const Home self = base_.self();
    base_.store(choosing(home, self), 1);
    base_.fence();  // B2: "choosing" is in memory before we look at the numbers
    std::uint64_t largest = 0;
    for (Home other = 0; other < base_.cores(); ++other)
      if (other != self) largest = std::max(largest, base_.load(number(home, other)));
    base_.store(number(home, self), largest + 1);
    base_.store(choosing(home, self), 0);  // in memory after our number (R3)
    base_.fence();  // our number is in memory before we look whether others have one
    return largest + 1;
  }

  void await_turn(Home home, Home other, std::uint64_t mine) {
    wait_while([&] { return base_.load(choosing(home, other)) != 0; });
    wait_while([&] {
      const std::uint64_t theirs = base_.load(number(home, other));
      return theirs != 0 && std::pair(theirs, other) < std::pair(mine, base_.self());
    });
  }

  template <class Condition>
  void wait_while(Condition&& condition) {
    if (!condition() || !fault_.ok()) return;
    Waiter waiter(waiting_, idle_);
    while (fault_.ok() && condition()) fault_ = waiter.step();
  }

  Base& base_;
  Offset first_;
  const WaitPolicy& waiting_;
  IdleHook* idle_;
  Status fault_;  // B4
};

}  // namespace tombolo::machine
