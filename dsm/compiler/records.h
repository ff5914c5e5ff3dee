// SPDX-License-Identifier: Apache-2.0
// Purpose: inserts the calls of tombolo_dsm_record, with the check of the flag where it is needed.
// All changes of a function's blocks by the instrumentation are here and in versions.h.
//
// Invariants: DRE1 a record that may be made outside of spans looks at the flag first: it costs a
//                  load and a branch there.
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/stores.h"

namespace tombolo::dsm::compiler {

struct Record {
  llvm::Instruction* before = nullptr;
  bool checked = false;
  MakeRanges ranges;
};

void insert(llvm::Module& module, const std::vector<Record>& records);

// Whether the thread holds a lock, as one bit.
llvm::Value* in_span(llvm::IRBuilderBase& builder);

}  // namespace tombolo::dsm::compiler
