// SPDX-License-Identifier: Apache-2.0
// Purpose: turns the atomic operations of C11 and C++ into calls of tombolo_dsm_atomic_*, which the
// runtime does at the home of the memory. Those on memory that only one thread knows stay.
//
// Refused, by an error that names the operation: 16 bytes, an address that is no multiple of the
// size, and calls of libatomic, whose locks would be private to each process.
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/private_memory.h"

namespace tombolo::dsm::compiler {

// The number of operations that are calls now.
unsigned replace_atomics(llvm::Function& function, PrivateMemory& memory);

// Of a function that replace_atomics() has calls of.
bool is_runtime_call(const llvm::Function& callee);

}  // namespace tombolo::dsm::compiler
