// SPDX-License-Identifier: Apache-2.0
// Purpose: a run that an innermost loop makes in each round, right after or before that of the
// round before, or always at one place, as one range that is recorded before the loop.
//
// Not taken: loops with calls, with several exits, with gaps between the runs, and outer loops.
//
// Invariants: DLR1 the loop makes all of the range's stores (DRC1 of runtime_calls.h): it has one
//                  exit and no instruction that may leave it otherwise, and the number of its
//                  rounds is known before it.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/compiler/analysis/runs.h"

namespace tombolo::dsm::compiler {

struct LoopRange {
  llvm::Instruction* before = nullptr;
  ByteRange range;
};

// Of one function.
class LoopRanges {
 public:
  LoopRanges(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  // If the run may be recorded before its loop: the range, with IR that computes it there.
  std::optional<LoopRange> of(const Run& run);

 private:
  struct Walk {
    llvm::Loop* loop;
    const llvm::SCEV* start;  // the address of the first round
    std::int64_t step;
  };

  std::optional<Walk> walk_of(const Run& run);
  const llvm::SCEV* rounds_of(const llvm::Loop& loop, const llvm::BasicBlock& block);
  std::optional<LoopRange> expanded(const Walk& walk, const llvm::SCEV* address,
                                    const llvm::SCEV* bytes);
  bool only_ends_by_its_exit(const llvm::Loop& loop) const;

  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  llvm::SCEVExpander expander_;
};

}  // namespace tombolo::dsm::compiler
