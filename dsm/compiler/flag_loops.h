// SPDX-License-Identifier: Apache-2.0
// Purpose: warns of synchronization without calls, which cannot work by pages: a loop that waits
// for a plain or volatile variable to change, and assembly with the processor's atomic
// instructions.
//
// A loop is one that waits if the condition under which it ends is a load of memory that other
// threads know, from an address that stays the same, and nothing in the loop may store to memory or
// wait for others by a call.
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/private_memory.h"

namespace tombolo::dsm::compiler {

void warn_of_flags(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                   PrivateMemory& memory);

}  // namespace tombolo::dsm::compiler
