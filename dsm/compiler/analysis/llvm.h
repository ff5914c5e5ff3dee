// SPDX-License-Identifier: Apache-2.0
// Purpose: LLVM as the plugin uses it: its headers, and the differences between its versions 14 to
// 19, which no other file names.
// Thread safety: plain functions.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <optional>

namespace tombolo::dsm::compiler {

inline bool begins_with(llvm::StringRef text, llvm::StringRef prefix) {
#if LLVM_VERSION_MAJOR >= 16
  return text.starts_with(prefix);
#else
  return text.startswith(prefix);
#endif
}

inline llvm::PointerType* byte_pointer(llvm::LLVMContext& context) {
  return llvm::PointerType::get(llvm::Type::getInt8Ty(context), 0);
}

inline bool expandable(const llvm::SCEV* value, llvm::Instruction* before,
                       llvm::SCEVExpander& expander, llvm::ScalarEvolution& evolution) {
#if LLVM_VERSION_MAJOR >= 15
  (void)evolution;
  return expander.isSafeToExpandAt(value, before);
#else
  (void)expander;
  return llvm::isSafeToExpandAt(value, before, evolution);
#endif
}

// Nothing when the size is known only when the program runs.
inline std::optional<std::uint64_t> stored_bytes(const llvm::DataLayout& layout, llvm::Type* type) {
  const llvm::TypeSize size = layout.getTypeStoreSize(type);
  if (size.isScalable()) return std::nullopt;
#if LLVM_VERSION_MAJOR >= 16
  return size.getFixedValue();
#else
  return size.getFixedSize();
#endif
}

// The variable behind an address: since 16 a call finds thread-local ones.
inline const llvm::Value* variable_of(const llvm::Value* object) {
#if LLVM_VERSION_MAJOR >= 16
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(object))
    if (call->getIntrinsicID() == llvm::Intrinsic::threadlocal_address)
      return call->getArgOperand(0);
#endif
  return object;
}

// Calls are added to the function: it reads and writes other memory than it says.
inline void forget_memory_attributes(llvm::Function& function) {
#if LLVM_VERSION_MAJOR >= 16
  function.removeFnAttr(llvm::Attribute::Memory);
#else
  for (const auto kind :
       {llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly,
        llvm::Attribute::ArgMemOnly, llvm::Attribute::InaccessibleMemOnly,
        llvm::Attribute::InaccessibleMemOrArgMemOnly})
    function.removeFnAttr(kind);
#endif
  function.removeFnAttr(llvm::Attribute::NoSync);
  function.removeFnAttr(llvm::Attribute::Speculatable);
}

// With `run` a pass over modules: the last one of the optimizer, at each level.
template <class MakePass>
void run_last(llvm::PassBuilder& builder, MakePass make) {
  builder.registerOptimizerLastEPCallback(
      [make](llvm::ModulePassManager& passes, auto&&...) { passes.addPass(make()); });
}

}  // namespace tombolo::dsm::compiler
