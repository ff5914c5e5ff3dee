// SPDX-License-Identifier: Apache-2.0
// Purpose: the stores of an instruction: the bytes that it writes, as IR that computes them. An
// instruction may be a store, an atomic operation, a copy or fill of the compiler, a vector store
// under a mask, or a call of the C library that writes to memory behind its arguments.
//
// Invariants: DSI1 the bytes are those that are written, none beside (DRC1 of runtime_calls.h).
//                  Where only the result says how many, they are recorded after the call.
// Thread safety: plain functions.
#pragma once

#include <functional>
#include <vector>

#include "dsm/compiler/analysis/llvm.h"

namespace tombolo::dsm::compiler {

struct ByteRange {
  llvm::Value* address = nullptr;
  llvm::Value* bytes = nullptr;   // of any integer type
  llvm::Value* stored = nullptr;  // if not null: whether they are, one bit
};
using MakeRanges = std::function<std::vector<ByteRange>(llvm::IRBuilderBase&)>;

struct Store {
  llvm::Instruction* instruction = nullptr;
  llvm::Value* address = nullptr;  // into the memory that is written
  std::uint64_t bytes = 0;         // from the address on; 0: `ranges` makes them
  MakeRanges ranges;
  bool after = false;  // `ranges` needs the instruction's result
};

// An instruction may have several: a call that writes behind two arguments.
std::vector<Store> stores_of(llvm::Instruction& instruction, const llvm::DataLayout& layout);

}  // namespace tombolo::dsm::compiler
