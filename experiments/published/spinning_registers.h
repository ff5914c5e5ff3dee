// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `scc` with other ways to acquire a test-and-set register than its own
// (machine/emulation/atomics_by_test_and_set.h, which backs off from 50 ns to 3.2 us):
//
//   SpinningCore     reads it again and again: 001's locks "without back-off"
//   BackingOffCore   waits 1 us after the first failure, twice as long after each further one,
//                    without bound: 001's locks with back-off (001 section 6.2)
//
// That the papers' back-off must also be at the register follows from their own numbers. With
// exclusive locks each pair changes the global counter twice, under the register of core 0, for
// some 0.45 us. So 48 processes take 43 us for a pair on average, whatever the locks do; a median
// of 12.3 us means that most of the waiting falls on a few pairs, as it does when a core that
// fails stays away for longer and longer. Spinning gives the 55 us of the variant without.
//
// Invariants: R1 a register is cleared only by the core that got it; neither gives up.
// Thread safety: as scc::Core.
#pragma once

#include "backends/scc/scc.h"
#include "base/random.h"

namespace tombolo::experiments::published {

template <class Base>
class SpinningRegister {
 public:
  static std::size_t bytes(machine::Home) { return 0; }
  SpinningRegister(Base& base, machine::Offset, const machine::WaitPolicy&, machine::IdleHook*)
      : base_(base) {}

  void acquire(machine::Home home) {
    while (!base_.test_and_set(home)) base_.cpu().compute(base_.cpu().timing().loop);
  }
  void release(machine::Home home) { base_.clear(home); }
  const Status& fault() const { return fault_; }

 private:
  Base& base_;
  Status fault_;
};

template <class Base>
class BackingOffRegister {
 public:
  static std::size_t bytes(machine::Home) { return 0; }
  BackingOffRegister(Base& base, machine::Offset, const machine::WaitPolicy&, machine::IdleHook*)
      : base_(base), random_(Random::stream(kStream, base.self())) {}

  void acquire(machine::Home home) {
    std::uint64_t ns = kFirstNanoseconds;
    while (!base_.test_and_set(home) && fault_.ok()) {
      fault_ = base_.pause(ns - random_.below(ns / 2 + 1));  // not in step with others
      ns *= 2;
    }
  }
  void release(machine::Home home) { base_.clear(home); }
  const Status& fault() const { return fault_; }

 private:
  static constexpr std::uint64_t kFirstNanoseconds = 1000;
  static constexpr std::uint64_t kStream = 0x7265676973746572;
  Base& base_;
  Random random_;
  Status fault_;
};

using SpinningCore = machine::LockedAtomics<scc::detail::Base, SpinningRegister>;
using BackingOffCore = machine::LockedAtomics<scc::detail::Base, BackingOffRegister>;

}  // namespace tombolo::experiments::published
