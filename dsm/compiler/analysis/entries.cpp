// SPDX-License-Identifier: Apache-2.0
// Purpose: see entries.h.
// Thread safety: see entries.h.
#include "dsm/compiler/analysis/entries.h"

namespace tombolo::dsm::compiler {

bool may_be_in_span(Entry entry, Depth depth) { return entry != Entry::outside || depth.high > 0; }

// Of a thread that was entered inside, at least one lock is held at depth 0.
bool must_be_in_span(Entry entry, Depth depth) {
  return entry == Entry::inside ? depth.low >= 0 : depth.low > 0;
}

Entries::Entries(const llvm::Module& module, const DepthsOf& depths) {
  for (const llvm::Function& function : module)
    if (!function.isDeclaration()) ways_[&function] = of_calls_from_elsewhere(function);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [caller, of_caller] : depths) changed |= follow_calls(*caller, of_caller);
  }
}

Entry Entries::of(const llvm::Function& function) const {
  const Ways ways = ways_.lookup(&function);
  if (!ways.inside) return Entry::outside;
  return ways.outside ? Entry::either : Entry::inside;
}

Entries::Ways Entries::of_calls_from_elsewhere(const llvm::Function& function) {
  if (function.getName() == "main") return {.outside = true, .inside = false};
  const bool any = !function.hasLocalLinkage() || function.hasAddressTaken();
  return {.outside = any, .inside = any};
}

bool Entries::enter(const llvm::Function& function, Ways ways) {
  Ways& known = ways_[&function];
  const bool fresh = (ways.outside && !known.outside) || (ways.inside && !known.inside);
  known.outside |= ways.outside;
  known.inside |= ways.inside;
  return fresh;
}

bool Entries::follow_calls(const llvm::Function& caller, const Depths& depths) {
  const Ways ways = ways_.lookup(&caller);
  bool changed = false;
  for (const auto& [instruction, depth] : depths) {
    const llvm::Function* callee = callee_of(*instruction);
    if (callee == nullptr || callee->isDeclaration()) continue;
    const bool inside = ways.inside || (ways.outside && depth.high > 0);
    const bool outside = (ways.outside && depth.low <= 0) || (ways.inside && depth.low < 0);
    changed |= enter(*callee, {.outside = outside, .inside = inside});
  }
  return changed;
}

}  // namespace tombolo::dsm::compiler
