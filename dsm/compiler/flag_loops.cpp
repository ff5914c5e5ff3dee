// SPDX-License-Identifier: Apache-2.0
// Purpose: see flag_loops.h.
// Thread safety: see flag_loops.h.
#include "dsm/compiler/flag_loops.h"

#include "dsm/compiler/analysis/messages.h"
#include "dsm/compiler/analysis/span_calls.h"

namespace tombolo::dsm::compiler {

namespace {

constexpr const char* message =
    "virtual shared memory: synchronization without calls: cannot work by pages: ";

// Calls that only pass the time.
bool passes_time(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return false;
  if (call->isInlineAsm() || llvm::isa<llvm::IntrinsicInst>(call)) return true;
  const llvm::Function* callee = callee_of(instruction);
  if (callee == nullptr) return false;
  return llvm::StringSwitch<bool>(callee->getName())
      .Cases("sched_yield", "pthread_yield", "thrd_yield", "usleep", "sleep", "nanosleep", true)
      .Default(false);
}

bool only_waits(const llvm::Loop& loop, PrivateMemory& memory) {
  for (const llvm::BasicBlock* block : loop.blocks())
    for (const llvm::Instruction& instruction : *block) {
      if (passes_time(instruction)) continue;
      if (llvm::isa<llvm::CallBase>(instruction)) return false;
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
      if (store != nullptr && memory.holds(store->getPointerOperand())) continue;
      const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr && instruction.mayWriteToMemory()) return false;
    }
  return true;
}

bool is_flag(const llvm::LoadInst& load, const llvm::Loop& loop, PrivateMemory& memory) {
  if (load.isAtomic() || !loop.isLoopInvariant(load.getPointerOperand())) return false;
  return !memory.holds(load.getPointerOperand());
}

// The load that the condition comes from, by operations without memory.
const llvm::LoadInst* flag_behind(const llvm::Value* condition, const llvm::Loop& loop,
                                  PrivateMemory& memory) {
  llvm::SmallVector<const llvm::Value*, 8> pending{condition};
  llvm::SmallPtrSet<const llvm::Value*, 16> seen;
  while (!pending.empty()) {
    const auto* part = llvm::dyn_cast<llvm::Instruction>(pending.pop_back_val());
    if (part == nullptr || !loop.contains(part) || !seen.insert(part).second) continue;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(part)) {
      if (is_flag(*load, loop, memory)) return load;
      continue;
    }
    if (llvm::isa<llvm::CallBase>(part)) continue;
    for (const llvm::Use& operand : part->operands()) pending.push_back(operand.get());
  }
  return nullptr;
}

void warn_of_loop(const llvm::Loop& loop, PrivateMemory& memory) {
  if (!only_waits(loop, memory)) return;
  llvm::SmallVector<llvm::BasicBlock*, 4> exits;
  loop.getExitingBlocks(exits);
  for (const llvm::BasicBlock* exit : exits) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(exit->getTerminator());
    if (branch == nullptr || branch->isUnconditional()) continue;
    if (const auto* load = flag_behind(branch->getCondition(), loop, memory)) {
      tell(*load, llvm::Twine(message) + "a loop that waits for a variable", llvm::DS_Warning);
      return;
    }
  }
}

bool is_atomic_assembly(const llvm::CallBase& call) {
  const auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand());
  if (assembly == nullptr) return false;
  const llvm::StringRef text = assembly->getAsmString();
  return text.contains("lock") || text.contains("xchg") || text.contains("ldxr") ||
         text.contains("stxr");
}

}  // namespace

void warn_of_flags(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                   PrivateMemory& memory) {
  for (const llvm::Loop* loop :
       analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
    warn_of_loop(*loop, memory);
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call != nullptr && is_atomic_assembly(*call))
      tell(instruction, llvm::Twine(message) + "assembly with atomic instructions",
           llvm::DS_Warning);
  }
}

}  // namespace tombolo::dsm::compiler
