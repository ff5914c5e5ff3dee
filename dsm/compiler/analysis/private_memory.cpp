// SPDX-License-Identifier: Apache-2.0
// Purpose: see private_memory.h.
// Thread safety: see private_memory.h.
#include "dsm/compiler/analysis/private_memory.h"

#include <llvm/Analysis/AliasAnalysis.h>

namespace tombolo::dsm::compiler {

namespace {

constexpr unsigned most_steps = 32;

// Made by this call of the function, and nowhere else known unless it escapes.
bool is_made_here(const llvm::Value* object) {
  if (llvm::isa<llvm::AllocaInst>(object) || llvm::isNoAliasCall(object)) return true;
  const auto* argument = llvm::dyn_cast<llvm::Argument>(object);
  return argument != nullptr && argument->hasByValAttr();
}

}  // namespace

bool PrivateMemory::holds(const llvm::Value* address) {
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(address, objects, nullptr, most_steps);
  return llvm::all_of(objects, [this](const llvm::Value* object) { return holds_object(object); });
}

bool PrivateMemory::holds_object(const llvm::Value* object) {
  object = variable_of(object);
  if (llvm::isa<llvm::UndefValue>(object)) return true;
  if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object))
    return variable->isThreadLocal() || variable->isConstant();
  if (!is_made_here(object)) return false;
  const auto [place, fresh] = escapes_.try_emplace(object, true);
  if (fresh) place->second = llvm::PointerMayBeCaptured(object, true, true);
  return !place->second;
}

}  // namespace tombolo::dsm::compiler
