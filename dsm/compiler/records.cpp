// SPDX-License-Identifier: Apache-2.0
// Purpose: see records.h.
// Thread safety: see records.h.
#include "dsm/compiler/records.h"

namespace tombolo::dsm::compiler {

namespace {

llvm::GlobalVariable* flag(llvm::Module& module) {
  if (auto* there = module.getNamedGlobal("tombolo_dsm_in_span")) return there;
  auto* type = llvm::Type::getInt32Ty(module.getContext());
  // At a fixed distance from the thread's pointer also in libraries: no call to find it.
  auto* made = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::ExternalLinkage,
                                        nullptr, "tombolo_dsm_in_span", nullptr,
                                        llvm::GlobalValue::InitialExecTLSModel);
  made->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return made;
}

llvm::FunctionCallee function(llvm::Module& module, const char* name,
                              llvm::ArrayRef<llvm::Type*> parameters) {
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), parameters, false);
  llvm::FunctionCallee found = module.getOrInsertFunction(name, type);
  auto* made = llvm::dyn_cast<llvm::Function>(found.getCallee());
  if (made != nullptr && made->isDeclaration()) {
    made->setVisibility(llvm::GlobalValue::HiddenVisibility);
    made->setDoesNotThrow();
  }
  return found;
}

// Of a line that the call stands for: the debugger and the verifier want one.
void call(llvm::IRBuilderBase& builder, const ByteRange& range) {
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  llvm::Type* pointer = byte_pointer(module.getContext());
  llvm::Value* address = builder.CreatePointerBitCastOrAddrSpaceCast(range.address, pointer);
  llvm::Value* bytes = builder.CreateZExtOrTrunc(range.bytes, builder.getInt64Ty());
  if (range.stored == nullptr) {
    builder.CreateCall(function(module, "tombolo_dsm_record", {pointer, builder.getInt64Ty()}),
                       {address, bytes});
    return;
  }
  const auto lane = function(module, "tombolo_dsm_record_lane",
                             {pointer, builder.getInt64Ty(), builder.getInt32Ty()});
  builder.CreateCall(
      lane, {address, bytes, builder.CreateZExtOrTrunc(range.stored, builder.getInt32Ty())});
}

}  // namespace

llvm::Value* in_span(llvm::IRBuilderBase& builder) {
  llvm::GlobalVariable* variable = flag(*builder.GetInsertBlock()->getModule());
  llvm::Value* value = builder.CreateLoad(builder.getInt32Ty(), variable);
  return builder.CreateICmpNE(value, builder.getInt32(0));
}

void insert(llvm::Module& module, const std::vector<Record>& records) {
  const llvm::MDNode* unlikely = llvm::MDBuilder(module.getContext()).createBranchWeights(1, 1000);
  llvm::Instruction* place = nullptr;     // of the record before, in its original block
  llvm::Instruction* checking = nullptr;  // the end of the block where that is made
  for (const Record& record : records) {
    llvm::Instruction* before = record.before;
    if (record.checked) {
      if (place != before) {
        llvm::IRBuilder<> builder(before);
        checking = llvm::SplitBlockAndInsertIfThen(in_span(builder), before, false,
                                                   const_cast<llvm::MDNode*>(unlikely));
        checking->setDebugLoc(before->getDebugLoc());
      }
      place = before;
      before = checking;
    }
    llvm::IRBuilder<> builder(before);
    for (const ByteRange& range : record.ranges(builder)) call(builder, range);
  }
}

}  // namespace tombolo::dsm::compiler
