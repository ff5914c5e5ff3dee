// SPDX-License-Identifier: Apache-2.0
// Purpose: the subject of an exploration: the body of each core, and the conditions that must hold.
//
// Invariants: GP1 the state of the bodies outside the machine is a function of each core's own
//                 progress, not of the order in which different cores made it: executions that lead
//                 to one state of the machine are merged.
// Thread safety: none needed: cores are fibres of one thread.
#pragma once

#include <string>
#include <string_view>

#include "litmus/explorer/memory.h"

namespace tombolo::litmus {

class Run;

class Program {
 public:
  virtual ~Program() = default;
  virtual MemoryShape shape() const = 0;
  // Before each execution: forgets the last one.
  virtual void begin() = 0;
  // The body of core `at.self`; `run` takes reports of failure.
  virtual void run(const machine::Attachment& at, Run& run) = 0;
  // After all have ended: the outcome, in words. May report a failure.
  virtual std::string outcome(const Memory& memory, Run& run) = 0;
};

}  // namespace tombolo::litmus
