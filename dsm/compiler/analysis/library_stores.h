// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of the C library that write to memory behind an argument, as a table, and the
// bytes that each writes. Those whose bytes cannot be computed (scanf) are not in it: their stores
// travel by pages.
//
// Invariants: DLS1 the same bytes as the function writes (DSI1 of stores.h). Of strings they are
//                  counted before the call, unless the result says how many there are.
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/stores.h"

namespace tombolo::dsm::compiler {

std::vector<Store> library_stores(llvm::CallBase& call);

}  // namespace tombolo::dsm::compiler
