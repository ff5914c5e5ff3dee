// SPDX-License-Identifier: Apache-2.0
// Purpose: see instrumentation.h.
// Thread safety: see instrumentation.h.
#include "dsm/compiler/instrumentation.h"

#include "dsm/compiler/analysis/loop_ranges.h"
#include "dsm/compiler/atomics.h"
#include "dsm/compiler/flag_loops.h"
#include "dsm/compiler/versions.h"

namespace tombolo::dsm::compiler {

namespace {

// With fewer stores than these, and without loops, checks cost no more than the branch to a copy.
constexpr unsigned few_stores = 3;

llvm::Instruction* place_after(llvm::Instruction& call) {
  if (auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call)) {
    llvm::BasicBlock* next = invoke->getNormalDest();
    return next->getSinglePredecessor() != nullptr ? &*next->getFirstInsertionPt() : nullptr;
  }
  const auto* plain = llvm::dyn_cast<llvm::CallInst>(&call);
  return plain != nullptr && !plain->isMustTailCall() ? call.getNextNode() : nullptr;
}

MakeRanges range_of(const Run& run) {
  return
      [base = run.address, offset = run.offset, bytes = run.bytes](llvm::IRBuilderBase& builder) {
        llvm::Value* first =
            builder.CreatePointerBitCastOrAddrSpaceCast(base, byte_pointer(builder.getContext()));
        if (offset != 0)
          first = builder.CreateGEP(builder.getInt8Ty(), first, builder.getInt64(offset));
        return std::vector<ByteRange>{{.address = first, .bytes = builder.getInt64(bytes)}};
      };
}

}  // namespace

bool Instrumentation::run() {
  bool changed = false;
  for (llvm::Function* function : functions()) changed |= replace_atomics(*function);
  if (variant_ == Variant::page) return changed;
  choose_bodies();
  for (Body& body : bodies_) plan(body);
  for (Body& body : bodies_) redirect_calls(body);
  for (auto [function, copy] : copies_) branch_to_copy(*function, *copy);
  insert(module_, records_);
  return changed || !records_.empty() || !copies_.empty();
}

std::vector<llvm::Function*> Instrumentation::functions() const {
  std::vector<llvm::Function*> all;
  for (llvm::Function& function : module_)
    if (!function.isDeclaration() && !function.hasAvailableExternallyLinkage() &&
        !is_runtime_call(function))
      all.push_back(&function);
  return all;
}

bool Instrumentation::replace_atomics(llvm::Function& function) {
  PrivateMemory memory;
  report_.add_function();
  warn_of_flags(function, analyses_, memory);
  const unsigned count = compiler::replace_atomics(function, memory);
  report_.add_atomics(count);
  if (count != 0) analyses_.invalidate(function, llvm::PreservedAnalyses::none());
  return count != 0;
}

// ---- Which bodies -------------------------------------------------------------------------------

void Instrumentation::choose_bodies() {
  const std::vector<llvm::Function*> all = functions();
  if (variant_ == Variant::full) {
    for (llvm::Function* function : all)
      bodies_.push_back(
          {.function = function, .entry = Entry::either, .copy = false, .depths = Depths()});
    return;
  }
  const SpanDepths spans(calls_, module_);
  Entries::DepthsOf depths;
  for (const llvm::Function* function : all) depths[function] = spans.of(*function);
  const Entries entries(module_, depths);
  for (llvm::Function* function : all)
    choose_versions(*function, entries.of(*function), depths[function], spans);
}

void Instrumentation::choose_versions(llvm::Function& function, Entry entry, const Depths& depths,
                                      const SpanDepths& spans) {
  if (entry == Entry::either && is_worth_a_copy(function, depths)) {
    entry = Entry::outside;
    llvm::Function* copy = copy_for_spans(function);
    copies_[&function] = copy;
    report_.add_copy();
    bodies_.push_back(
        {.function = copy, .entry = Entry::inside, .copy = true, .depths = spans.of(*copy)});
  }
  bodies_.push_back({.function = &function, .entry = entry, .copy = false, .depths = depths});
}

bool Instrumentation::is_worth_a_copy(llvm::Function& function, const Depths& depths) {
  PrivateMemory memory;
  unsigned stores = 0;
  const llvm::DataLayout& layout = module_.getDataLayout();
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto depth = depths.find(&instruction);
    if (depth == depths.end() || must_be_in_span(Entry::either, depth->second)) continue;
    for (const Store& store : stores_of(instruction, layout))
      if (!memory.holds(store.address)) ++stores;
  }
  if (stores == 0 || !can_have_versions(function)) return false;
  return stores >= few_stores || !analyses_.getResult<llvm::LoopAnalysis>(function).empty();
}

// ---- Which records ------------------------------------------------------------------------------

void Instrumentation::plan(Body& body) {
  PrivateMemory memory;
  const std::size_t before = records_.size();
  for (llvm::BasicBlock& block : *body.function) plan_block(block, body, memory);
  if (records_.size() != before || copies_.count(body.function) != 0)
    forget_memory_attributes(*body.function);
}

void Instrumentation::plan_block(llvm::BasicBlock& block, const Body& body, PrivateMemory& memory) {
  std::vector<Chosen> chosen;
  for (llvm::Instruction& instruction : block) {
    choose(instruction, body, memory, chosen);
    report_call(instruction, body, memory);
  }
  if (chosen.empty()) return;
  auto& evolution = analyses_.getResult<llvm::ScalarEvolutionAnalysis>(*body.function);
  std::vector<Run> runs = take_runs(block, chosen, evolution);
  add_runs(runs);
  add_others(chosen);
}

void Instrumentation::choose(llvm::Instruction& instruction, const Body& body,
                             PrivateMemory& memory, std::vector<Chosen>& chosen) {
  const auto depth = body.depths.find(&instruction);
  if (variant_ != Variant::full && depth == body.depths.end()) return;  // never reached
  for (Store& store : stores_of(instruction, module_.getDataLayout())) {
    Fate fate = Fate::checked;
    if (memory.holds(store.address))
      fate = Fate::own;
    else if (variant_ == Variant::full)
      fate = Fate::checked;
    else if (must_be_in_span(body.entry, depth->second))
      fate = Fate::recorded;
    else if (!may_be_in_span(body.entry, depth->second))
      fate = Fate::outside;
    report_.add_store(instruction, fate, body.copy);
    if (fate == Fate::recorded || fate == Fate::checked)
      chosen.push_back({.store = std::move(store), .checked = fate == Fate::checked});
  }
}

void Instrumentation::add_runs(std::vector<Run>& runs) {
  if (runs.empty()) return;
  LoopRanges loops(*runs.front().before->getFunction(), analyses_);
  for (const Run& run : runs) {
    report_.add_merged(run.stores.size() - 1);
    const std::optional<LoopRange> loop = loops.of(run);
    if (!loop) {
      records_.push_back({.before = run.before, .checked = run.checked, .ranges = range_of(run)});
      continue;
    }
    report_.add_range();
    records_.push_back({.before = loop->before,
                        .checked = run.checked,
                        .ranges = [range = loop->range](llvm::IRBuilderBase&) {
                          return std::vector<ByteRange>{range};
                        }});
  }
}

void Instrumentation::add_others(std::vector<Chosen>& others) {
  for (Chosen& other : others) {
    llvm::Instruction* before = other.store.instruction;
    if (other.store.after) before = place_after(*before);
    if (before == nullptr) continue;
    records_.push_back(
        {.before = before, .checked = other.checked, .ranges = std::move(other.store.ranges)});
  }
}

// ---- Calls --------------------------------------------------------------------------------------

void Instrumentation::redirect_calls(Body& body) {
  for (auto [instruction, depth] : body.depths) {
    if (!must_be_in_span(body.entry, depth)) continue;
    auto* call = const_cast<llvm::CallBase*>(llvm::dyn_cast<llvm::CallBase>(instruction));
    llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    // One that the linker may replace is reached by its name only.
    if (callee == nullptr || callee->isInterposable()) continue;
    if (const auto copy = copies_.find(callee); copy != copies_.end())
      call->setCalledFunction(copy->second);
  }
}

void Instrumentation::report_call(const llvm::Instruction& instruction, const Body& body,
                                  PrivateMemory& memory) {
  const llvm::Function* callee = callee_of(instruction);
  const auto depth = body.depths.find(&instruction);
  if (callee == nullptr || !callee->isDeclaration() || callee->isIntrinsic()) return;
  if (depth == body.depths.end() || !may_be_in_span(body.entry, depth->second)) return;
  if (calls_.of(*callee) != SpanCall::none || is_runtime_call(*callee)) return;
  const auto& call = llvm::cast<llvm::CallBase>(instruction);
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    const llvm::Value* argument = call.getArgOperand(i);
    if (!argument->getType()->isPointerTy() || call.onlyReadsMemory(i)) continue;
    if (memory.holds(argument)) continue;
    report_.add_call(instruction, callee->getName());
    return;
  }
}

}  // namespace tombolo::dsm::compiler
