// SPDX-License-Identifier: Apache-2.0
// Purpose: how many locks a thread holds at an instruction, as bounds, by forward analysis of a
// function: begins and ends of spans between its entry and the instruction. The calls to functions
// of the same unit count as their bodies do.
//
// 003 section 5.6 walks the blocks between a lock and its unlock; bounds also tell nested spans, a
// lock that only one branch takes, and functions that lock or unlock for their callers.
//
// Invariants: DSD1 the bounds are relative to the entry of the function, where they are 0: one
//                  analysis serves for entries in spans and outside.
//             DSD2 a bound of `most` stands for that many or more, one of -most likewise. So the
//                  analysis ends, also where a loop locks and does not unlock.
//             DSD3 a function without a body here, and one that is called through a pointer, is
//                  taken to unlock as often as it locks. If it does not, stores are not recorded
//                  and travel by pages: less precise, and right.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/compiler/analysis/span_calls.h"

namespace tombolo::dsm::compiler {

struct Depth {
  static constexpr int most = 6;
  int low = 0;
  int high = 0;

  bool operator==(const Depth&) const = default;
  Depth joined(Depth other) const;
  Depth plus(Depth effect) const;
};

using Depths = llvm::DenseMap<const llvm::Instruction*, Depth>;

class SpanDepths {
 public:
  SpanDepths(const SpanCalls& calls, llvm::Module& module);

  // Before each call and each instruction that may write memory; without those that are never
  // reached.
  Depths of(const llvm::Function& function) const;

 private:
  using Entries = llvm::DenseMap<const llvm::BasicBlock*, Depth>;

  // Of the whole function, from its entry to its returns.
  Depth effect_of(const llvm::Function& function) const;
  // Of one instruction when it has returned; when it has thrown.
  Depth effect(const llvm::Instruction& instruction) const;
  Depth effect_of_throw(const llvm::Instruction& instruction) const;
  Depth through(const llvm::BasicBlock& block, Depth depth) const;
  Depth along(const llvm::BasicBlock& from, const llvm::BasicBlock& to, Depth depth) const;
  Entries entries_of(const llvm::Function& function) const;

  const SpanCalls& calls_;
  llvm::DenseMap<const llvm::Function*, Depth> effects_;  // those that are not 0
};

}  // namespace tombolo::dsm::compiler
