// SPDX-License-Identifier: Apache-2.0
// Purpose: whether a function may be entered inside of spans, outside of them, or both, by the
// calls in its unit. Functions that other units can call, or a pointer, may be entered in both
// ways; main is entered outside.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/compiler/analysis/span_depth.h"

namespace tombolo::dsm::compiler {

enum class Entry { outside, inside, either };

// At an instruction of a function that was entered so.
bool may_be_in_span(Entry entry, Depth depth);
bool must_be_in_span(Entry entry, Depth depth);

class Entries {
 public:
  using DepthsOf = llvm::DenseMap<const llvm::Function*, Depths>;
  Entries(const llvm::Module& module, const DepthsOf& depths);

  Entry of(const llvm::Function& function) const;

 private:
  struct Ways {
    bool outside = false;
    bool inside = false;
  };
  static Ways of_calls_from_elsewhere(const llvm::Function& function);
  // True if it is new that the function may be entered so.
  bool enter(const llvm::Function& function, Ways ways);
  bool follow_calls(const llvm::Function& caller, const Depths& depths);

  llvm::DenseMap<const llvm::Function*, Ways> ways_;
};

}  // namespace tombolo::dsm::compiler
