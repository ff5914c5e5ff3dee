// SPDX-License-Identifier: Apache-2.0
// Purpose: errors and warnings to the author of the program, with the line.
// Thread safety: plain functions.
#pragma once

#include "dsm/compiler/analysis/llvm.h"

namespace tombolo::dsm::compiler {

inline void tell(const llvm::Instruction& about, const llvm::Twine& message,
                 llvm::DiagnosticSeverity severity) {
  const llvm::Function& function = *about.getFunction();
  function.getContext().diagnose(
      llvm::DiagnosticInfoUnsupported(function, message, about.getDebugLoc(), severity));
}

}  // namespace tombolo::dsm::compiler
