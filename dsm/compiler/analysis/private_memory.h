// SPDX-License-Identifier: Apache-2.0
// Purpose: addresses of memory that no other thread can know: stack slots and fresh blocks of the
// heap whose address stays in the function, copies of arguments, variables that are thread-local,
// and constants. 003 section 5.6 leaves out "local stack variables"; a slot whose address was
// handed on is not one of them here, and all objects that a pointer may point to are looked at.
//
// Invariants: DPP1 a doubt makes memory shared.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/compiler/analysis/llvm.h"

namespace tombolo::dsm::compiler {

// Of one function, whose instructions may be added to but must not escape further addresses.
class PrivateMemory {
 public:
  bool holds(const llvm::Value* address);

 private:
  bool holds_object(const llvm::Value* object);

  llvm::DenseMap<const llvm::Value*, bool> escapes_;
};

}  // namespace tombolo::dsm::compiler
