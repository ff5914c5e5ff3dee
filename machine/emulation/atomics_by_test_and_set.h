// SPDX-License-Identifier: Apache-2.0
// Purpose: the contract's atomics for a machine with one test-and-set register for each home (the
// Intel SCC): the register is the lock of the home's words.
//
// Base offers, besides the operations that locked_atomics.h asks for:
//   bool test_and_set(Home)   true if the register was clear; it is set now, by us
//   void clear(Home)          after everything this core stored before is in memory
//
// Not fair: the core that asks at the right moment gets the register. Memory: none.
//
// Invariants: TS1 while it waits, a core backs off, so that the holder is not kept from the memory.
//             TS2 an error of the idle hook ends the wait as in bakery.h, BK4.
// Thread safety: as a core, one thread at a time.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "base/status.h"
#include "machine/emulation/locked_atomics.h"
#include "machine/place.h"
#include "machine/waiting.h"

namespace tombolo::machine {

template <class Base>
concept HasTestAndSet = requires(Base& base, Home home) {
  { base.test_and_set(home) } -> std::same_as<bool>;
  { base.clear(home) } -> std::same_as<void>;
};

template <class Base>
class TestAndSetLock {
 public:
  static std::size_t bytes(Home) { return 0; }

  // Also checks the concept, which needs Base to be complete.
  TestAndSetLock(Base& base, Offset, const WaitPolicy&, IdleHook*) : base_(base) {
    static_assert(HasTestAndSet<Base>);
  }

  void acquire(Home home) {
    std::uint64_t ns = shortest_pause_ns;
    while (!base_.test_and_set(home) && error_.ok()) {
      error_ = base_.pause(ns);  // TS1, TS2
      ns = std::min(ns * 2, longest_pause_ns);
    }
  }
  void release(Home home) { base_.clear(home); }
  const Status& error() const { return error_; }

 private:
  static constexpr std::uint64_t shortest_pause_ns = 50;
  static constexpr std::uint64_t longest_pause_ns = 3200;
  Base& base_;
  Status error_;
};

template <class Base>
using AtomicsByTestAndSet = LockedAtomics<Base, TestAndSetLock>;

}  // namespace tombolo::machine
