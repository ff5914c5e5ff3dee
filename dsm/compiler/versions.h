// SPDX-License-Identifier: Apache-2.0
// Purpose: two versions of a function that may be entered in spans and outside: the function itself
// for threads outside, whose stores cost nothing, and a copy that records its stores. On entry
// the function looks at the flag, and goes to the copy in a span. Callers in the same unit that are
// certain to be in a span call the copy.
//
// Invariants: DVR1 a function has the same effect in both versions; a jump from one to the other
//                  keeps the arguments and the result where they are (a tail call).
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/llvm.h"

namespace tombolo::dsm::compiler {

bool can_have_versions(const llvm::Function& function);

// A copy, for spans.
llvm::Function* copy_for_spans(llvm::Function& function);

// Has the function go to its copy when it is entered in a span.
void branch_to_copy(llvm::Function& function, llvm::Function& copy);

}  // namespace tombolo::dsm::compiler
