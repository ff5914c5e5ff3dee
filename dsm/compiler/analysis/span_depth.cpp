// SPDX-License-Identifier: Apache-2.0
// Purpose: see span_depth.h.
// Thread safety: see span_depth.h.
#include "dsm/compiler/analysis/span_depth.h"

#include <algorithm>

namespace tombolo::dsm::compiler {

namespace {

constexpr Depth unknown{.low = -Depth::most, .high = Depth::most};
constexpr int most_rounds = 8;

// A sum of bounds: one that stands for "so many or more" stays where the other goes back (DSD2).
int lower(int bound, int by) {
  if (bound == -Depth::most) return bound;
  return std::clamp(bound + by, -Depth::most, Depth::most);
}
int upper(int bound, int by) {
  if (bound == Depth::most) return bound;
  return std::clamp(bound + by, -Depth::most, Depth::most);
}

// The call whose result decides which way the block goes, and whether it is 0 on the way `taken`.
struct Decision {
  const llvm::Instruction* call;
  bool zero;
};

std::optional<Decision> decision(const llvm::BasicBlock& from, const llvm::BasicBlock& to) {
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
  if (branch == nullptr || branch->isUnconditional()) return std::nullopt;
  if (branch->getSuccessor(0) == branch->getSuccessor(1)) return std::nullopt;
  const bool taken = branch->getSuccessor(0) == &to;
  if (const auto* call = llvm::dyn_cast<llvm::CallInst>(branch->getCondition()))
    return Decision{.call = call, .zero = !taken};
  const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (compare == nullptr || !compare->isEquality()) return std::nullopt;
  const auto* zero = llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1));
  const auto* call = llvm::dyn_cast<llvm::CallInst>(compare->getOperand(0));
  if (zero == nullptr || !zero->isZero() || call == nullptr) return std::nullopt;
  return Decision{.call = call,
                  .zero = (compare->getPredicate() == llvm::CmpInst::ICMP_EQ) == taken};
}

bool may_matter(const llvm::Instruction& instruction) {
  return llvm::isa<llvm::CallBase>(instruction) || instruction.mayWriteToMemory();
}

}  // namespace

Depth Depth::joined(Depth other) const {
  return {.low = std::min(low, other.low), .high = std::max(high, other.high)};
}

Depth Depth::plus(Depth effect) const {
  return {.low = lower(low, effect.low), .high = upper(high, effect.high)};
}

SpanDepths::SpanDepths(const SpanCalls& calls, llvm::Module& module) : calls_(calls) {
  for (int round = 0;; ++round) {
    bool changed = false;
    for (const llvm::Function& function : module) {
      if (function.isDeclaration() || calls_.of(function) != SpanCall::none) continue;
      const Depth before = effects_.lookup(&function);
      const Depth now = effect_of(function);
      if (now == before) continue;
      // Functions that call each other in a circle and lock on the way have no end.
      effects_[&function] = round < most_rounds ? now : unknown;
      changed = changed || before != unknown;
    }
    if (!changed) return;
  }
}

Depth SpanDepths::effect_of(const llvm::Function& function) const {
  if (effects_.lookup(&function) == unknown) return unknown;
  std::optional<Depth> all;
  for (const auto& [block, entry] : entries_of(function)) {
    if (!llvm::isa<llvm::ReturnInst>(block->getTerminator())) continue;
    const Depth at_return = through(*block, entry);
    all = all ? all->joined(at_return) : at_return;
  }
  return all.value_or(Depth{});
}

Depth SpanDepths::effect(const llvm::Instruction& instruction) const {
  switch (calls_.of(instruction)) {
    case SpanCall::begins:
      return {.low = 1, .high = 1};
    case SpanCall::ends:
      return {.low = -1, .high = -1};
    case SpanCall::tries_zero:
    case SpanCall::tries_true:
      return {.low = 0, .high = 1};
    case SpanCall::none:
      break;
  }
  const llvm::Function* callee = callee_of(instruction);
  return callee == nullptr ? Depth{} : effects_.lookup(callee);
}

Depth SpanDepths::effect_of_throw(const llvm::Instruction& instruction) const {
  return effect(instruction).joined({});
}

Depth SpanDepths::through(const llvm::BasicBlock& block, Depth depth) const {
  for (const llvm::Instruction& instruction : block)
    if (!instruction.isTerminator() && llvm::isa<llvm::CallBase>(instruction))
      depth = depth.plus(effect(instruction));
  return depth;
}

// `depth` is the one before the terminator of `from`.
Depth SpanDepths::along(const llvm::BasicBlock& from, const llvm::BasicBlock& to,
                        Depth depth) const {
  const llvm::Instruction& end = *from.getTerminator();
  if (const auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&end))
    return depth.plus(invoke->getNormalDest() == &to ? effect(end) : effect_of_throw(end));
  const std::optional<Decision> decided = decision(from, to);
  if (!decided || decided->call->getParent() != &from) return depth;
  const SpanCall call = calls_.of(*decided->call);
  if (call != SpanCall::tries_zero && call != SpanCall::tries_true) return depth;
  const bool taken = decided->zero == (call == SpanCall::tries_zero);
  // The bounds have the lock as one that may be held.
  return depth.plus(taken ? Depth{.low = 1, .high = 0} : Depth{.low = 0, .high = -1});
}

SpanDepths::Entries SpanDepths::entries_of(const llvm::Function& function) const {
  Entries entries;
  entries[&function.getEntryBlock()] = {};
  llvm::SmallVector<const llvm::BasicBlock*, 32> pending{&function.getEntryBlock()};
  while (!pending.empty()) {
    const llvm::BasicBlock* block = pending.pop_back_val();
    const Depth end = through(*block, entries[block]);
    for (const llvm::BasicBlock* next : llvm::successors(block)) {
      const Depth reached = along(*block, *next, end);
      const auto [place, fresh] = entries.try_emplace(next, reached);
      const Depth joined = place->second.joined(reached);
      if (!fresh && joined == place->second) continue;
      place->second = joined;
      pending.push_back(next);
    }
  }
  return entries;
}

Depths SpanDepths::of(const llvm::Function& function) const {
  Depths depths;
  for (const auto& [block, entry] : entries_of(function)) {
    Depth depth = entry;
    for (const llvm::Instruction& instruction : *block) {
      if (may_matter(instruction)) depths[&instruction] = depth;
      if (llvm::isa<llvm::CallBase>(instruction)) depth = depth.plus(effect(instruction));
    }
  }
  return depths;
}

}  // namespace tombolo::dsm::compiler
