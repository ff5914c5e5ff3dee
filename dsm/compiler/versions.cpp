// SPDX-License-Identifier: Apache-2.0
// Purpose: see versions.h.
// Thread safety: see versions.h.
#include "dsm/compiler/versions.h"

#include "dsm/compiler/records.h"

namespace tombolo::dsm::compiler {

namespace {

// A tail call leaves arguments that lie on the stack where they are, of one kind or another for
// each target.
bool has_argument_on_the_stack(const llvm::Function& function) {
  return llvm::any_of(function.args(), [](const llvm::Argument& argument) {
    return argument.hasPassPointeeByValueCopyAttr() || argument.hasSwiftErrorAttr();
  });
}

// The first instruction behind the slots of the stack, which stay in the first block: elsewhere
// they would be made anew each time.
llvm::Instruction* behind_slots(llvm::BasicBlock& entry) {
  llvm::SmallVector<llvm::AllocaInst*, 16> slots;
  for (llvm::Instruction& instruction : entry)
    if (auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
      if (slot->isStaticAlloca()) slots.push_back(slot);
  for (llvm::AllocaInst* slot : llvm::reverse(slots)) slot->moveBefore(&*entry.begin());
  auto* behind = &*entry.begin();
  for (std::size_t i = 0; i < slots.size(); ++i) behind = behind->getNextNode();
  return behind;
}

llvm::DebugLoc line_of(const llvm::Function& function) {
  llvm::DISubprogram* program = function.getSubprogram();
  if (program == nullptr) return {};
  return llvm::DILocation::get(function.getContext(), program->getScopeLine(), 0, program);
}

}  // namespace

bool can_have_versions(const llvm::Function& function) {
  if (function.isVarArg() || has_argument_on_the_stack(function)) return false;
  if (function.hasFnAttribute(llvm::Attribute::Naked) || function.isPresplitCoroutine())
    return false;
  if (function.callsFunctionThatReturnsTwice()) return false;
  // Tables of labels lead into the function itself.
  return llvm::none_of(function,
                       [](const llvm::BasicBlock& block) { return block.hasAddressTaken(); });
}

llvm::Function* copy_for_spans(llvm::Function& function) {
  llvm::ValueToValueMapTy values;
  llvm::Function* copy = llvm::CloneFunction(&function, values);
  copy->setName(function.getName() + ".tombolo_span");
  copy->setComdat(nullptr);
  copy->setDLLStorageClass(llvm::GlobalValue::DefaultStorageClass);
  copy->setVisibility(llvm::GlobalValue::DefaultVisibility);
  if (function.hasLinkOnceODRLinkage() || function.hasWeakODRLinkage()) {
    // One for all units, as the function itself.
    copy->setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
    copy->setVisibility(llvm::GlobalValue::HiddenVisibility);
    copy->setComdat(function.getParent()->getOrInsertComdat(copy->getName()));
  } else {
    copy->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return copy;
}

void branch_to_copy(llvm::Function& function, llvm::Function& copy) {
  llvm::Instruction* behind = behind_slots(function.getEntryBlock());
  llvm::IRBuilder<> builder(behind);
  builder.SetCurrentDebugLocation(line_of(function));
  llvm::MDNode* unlikely = llvm::MDBuilder(function.getContext()).createBranchWeights(1, 1000);
  llvm::Instruction* end =
      llvm::SplitBlockAndInsertIfThen(in_span(builder), behind, true, unlikely);
  builder.SetInsertPoint(end);
  builder.SetCurrentDebugLocation(line_of(function));
  llvm::SmallVector<llvm::Value*, 8> arguments;
  for (llvm::Argument& argument : function.args()) arguments.push_back(&argument);
  llvm::CallInst* call = builder.CreateCall(&copy, arguments);
  call->setCallingConv(function.getCallingConv());
  call->setAttributes(function.getAttributes().removeFnAttributes(function.getContext()));
  call->setTailCallKind(llvm::CallInst::TCK_MustTail);
  if (call->getType()->isVoidTy())
    builder.CreateRetVoid();
  else
    builder.CreateRet(call);
  end->eraseFromParent();
}

}  // namespace tombolo::dsm::compiler
