// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `scc` as the papers' programs use its test-and-set registers: a core that
// wants one reads it again and again (001 section 5.5: "in a blocking fashion"), where the machine
// itself backs off from 50 ns to 3.2 us (machine/emulation/atomics_by_test_and_set.h).
//
// Invariants: SR1 a register is cleared only by the core that got it.
// Thread safety: as scc::Core.
#pragma once

#include "backends/scc/scc.h"
#include "machine/emulation/locked_atomics.h"

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
  const Status& error() const { return error_; }

 private:
  Base& base_;
  Status error_;
};

using SpinningCore = machine::LockedAtomics<scc::detail::Base, SpinningRegister>;

}  // namespace tombolo::experiments::published
