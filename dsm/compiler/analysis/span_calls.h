// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls that begin and end spans: locks of Pthreads, of the C++ library (whose
// wrappers are calls at -O0), of OpenMP, of our C interface with the names of Samhita's (003 table
// 5.2), and those that a user names.
//
// A mutex of C++ is known by the mangled name of its function: its body, where the compiler sees
// one, has branches that hide that the lock is taken.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/compiler/analysis/llvm.h"

namespace tombolo::dsm::compiler {

// How a call changes the number of locks that the thread holds.
enum class SpanCall {
  none,
  begins,
  ends,
  tries_zero,  // begins one if its result is 0
  tries_true,  // begins one if its result is not 0
};

class SpanCalls {
 public:
  // Of the table, and besides functions of these names.
  SpanCalls(const std::vector<std::string>& beginning, const std::vector<std::string>& ending);

  SpanCall of(const llvm::Function& callee) const;
  SpanCall of(const llvm::Instruction& instruction) const;

 private:
  llvm::StringMap<SpanCall> calls_;
};

// The function that a call names, or null.
const llvm::Function* callee_of(const llvm::Instruction& instruction);

}  // namespace tombolo::dsm::compiler
