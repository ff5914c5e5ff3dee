// SPDX-License-Identifier: Apache-2.0
// Purpose: see loop_ranges.h.
// Thread safety: see loop_ranges.h.
#include "dsm/compiler/analysis/loop_ranges.h"

#include <cstdlib>

namespace tombolo::dsm::compiler {

LoopRanges::LoopRanges(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
    : loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
      evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
      dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
      expander_(evolution_, function.getParent()->getDataLayout(), "tombolo") {}

std::optional<LoopRange> LoopRanges::of(const Run& run) {
  const std::optional<Walk> walk = walk_of(run);
  if (!walk) return std::nullopt;
  const llvm::SCEV* rounds = rounds_of(*walk->loop, *run.before->getParent());
  if (rounds == nullptr) return std::nullopt;
  llvm::Type* type = rounds->getType();
  const llvm::SCEV* size = evolution_.getConstant(type, run.bytes);
  if (walk->step == 0) {
    // It has no effect to record the place of a loop without rounds only if that is 0 bytes.
    const llvm::SCEV* any = evolution_.getUMinExpr(rounds, evolution_.getOne(type));
    return expanded(*walk, walk->start, evolution_.getMulExpr(any, size));
  }
  if (static_cast<std::uint64_t>(std::abs(walk->step)) != run.bytes) return std::nullopt;
  const llvm::SCEV* bytes = evolution_.getMulExpr(rounds, size);
  const llvm::SCEV* lowest = walk->start;
  // Backwards, the last round is the lowest: one run more than the bytes below the first.
  if (walk->step < 0) lowest = evolution_.getAddExpr(lowest, evolution_.getMinusSCEV(size, bytes));
  return expanded(*walk, lowest, bytes);
}

std::optional<LoopRanges::Walk> LoopRanges::walk_of(const Run& run) {
  llvm::Loop* loop = loops_.getLoopFor(run.before->getParent());
  if (loop == nullptr || !loop->isInnermost()) return std::nullopt;
  const llvm::SCEV* base = evolution_.getSCEV(run.address);
  llvm::Type* index = evolution_.getEffectiveSCEVType(base->getType());
  const llvm::SCEV* address = evolution_.getAddExpr(
      base, evolution_.getConstant(index, static_cast<std::uint64_t>(run.offset), true));
  if (evolution_.isLoopInvariant(address, loop))
    return Walk{.loop = loop, .start = address, .step = 0};
  const auto* moving = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
  if (moving == nullptr || moving->getLoop() != loop || !moving->isAffine()) return std::nullopt;
  const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(moving->getStepRecurrence(evolution_));
  if (step == nullptr) return std::nullopt;
  return Walk{.loop = loop, .start = moving->getStart(), .step = step->getAPInt().getSExtValue()};
}

// How often the block is run: null if that is not known before the loop.
const llvm::SCEV* LoopRanges::rounds_of(const llvm::Loop& loop, const llvm::BasicBlock& block) {
  const llvm::BasicBlock* exit = loop.getExitingBlock();
  const llvm::BasicBlock* latch = loop.getLoopLatch();
  if (exit == nullptr || latch == nullptr || !only_ends_by_its_exit(loop)) return nullptr;
  const llvm::SCEV* back = evolution_.getBackedgeTakenCount(&loop);
  if (llvm::isa<llvm::SCEVCouldNotCompute>(back)) return nullptr;
  auto* word = block.getModule()->getDataLayout().getIntPtrType(block.getContext());
  if (evolution_.getTypeSizeInBits(back->getType()) > word->getBitWidth()) return nullptr;
  back = evolution_.getNoopOrZeroExtend(back, word);
  if (dominators_.dominates(&block, exit))
    return evolution_.getAddExpr(back, evolution_.getOne(back->getType()));
  // After the exit, and on each way back.
  return dominators_.dominates(&block, latch) ? back : nullptr;
}

bool LoopRanges::only_ends_by_its_exit(const llvm::Loop& loop) const {
  for (const llvm::BasicBlock* block : loop.blocks())
    for (const llvm::Instruction& instruction : *block) {
      if (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction))
        return false;
      if (!llvm::isGuaranteedToTransferExecutionToSuccessor(&instruction)) return false;
    }
  return true;
}

std::optional<LoopRange> LoopRanges::expanded(const Walk& walk, const llvm::SCEV* address,
                                              const llvm::SCEV* bytes) {
  llvm::BasicBlock* entry = walk.loop->getLoopPreheader();
  // The optimizer has merged it with a block that may go elsewhere.
  if (entry == nullptr)
    entry = llvm::InsertPreheaderForLoop(walk.loop, &dominators_, &loops_, nullptr, false);
  if (entry == nullptr) return std::nullopt;
  llvm::Instruction* before = entry->getTerminator();
  if (!expandable(address, before, expander_, evolution_) ||
      !expandable(bytes, before, expander_, evolution_))
    return std::nullopt;
  llvm::Value* first = expander_.expandCodeFor(address, byte_pointer(before->getContext()), before);
  llvm::Value* length = expander_.expandCodeFor(bytes, bytes->getType(), before);
  return LoopRange{.before = before, .range = {.address = first, .bytes = length}};
}

}  // namespace tombolo::dsm::compiler
