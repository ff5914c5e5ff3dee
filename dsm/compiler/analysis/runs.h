// SPDX-License-Identifier: Apache-2.0
// Purpose: the stores of one block as runs of neighbouring bytes: those at constant distances from
// each other whose bytes touch or overlap are recorded once, before the first of them.
//
// Invariants: DRN1 a run has no gap (DRC1 of runtime_calls.h).
//             DRN2 between the first and the last store of a run is no instruction that may end the
//                  block early, or a span: the last one is certain to happen in the same span.
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/stores.h"

namespace tombolo::dsm::compiler {

// A store that is to be recorded. `checked`: only if the flag says that the thread is in a span.
struct Chosen {
  Store store;
  bool checked = false;
};

struct Run {
  llvm::Instruction* before = nullptr;  // the first store
  llvm::Value* address = nullptr;       // of that store
  std::int64_t offset = 0;              // of the run's first byte, from there
  std::uint64_t bytes = 0;
  bool checked = false;
  std::vector<const llvm::Instruction*> stores;
};

// Takes those of constant size from the stores of a block, which are in its order; the others stay.
std::vector<Run> take_runs(llvm::BasicBlock& block, std::vector<Chosen>& stores,
                           llvm::ScalarEvolution& evolution);

}  // namespace tombolo::dsm::compiler
