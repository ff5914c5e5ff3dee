// SPDX-License-Identifier: Apache-2.0
// Purpose: see atomics.h.
// Thread safety: see atomics.h.
#include "dsm/compiler/atomics.h"

#include <llvm/Support/AtomicOrdering.h>

#include "dsm/compiler/analysis/messages.h"
#include "dsm/compiler/analysis/span_calls.h"

namespace tombolo::dsm::compiler {

namespace {

constexpr std::uint64_t most_bytes = 8;
using Operation = llvm::AtomicRMWInst::BinOp;

// One operation that becomes a call.
class Replacement {
 public:
  explicit Replacement(llvm::Instruction& instruction)
      : instruction_(instruction), builder_(&instruction) {}

  void load(llvm::LoadInst& load) {
    const unsigned bytes = size_of(load.getType());
    llvm::Value* word =
        call("load", bytes, word_of(bytes), {order(load.getOrdering())}, load.getPointerOperand());
    become(from_word(word, load.getType()));
  }

  void store(llvm::StoreInst& store) {
    llvm::Value* value = store.getValueOperand();
    const unsigned bytes = size_of(value->getType());
    call("store", bytes, builder_.getVoidTy(), {to_word(value), order(store.getOrdering())},
         store.getPointerOperand());
    store.eraseFromParent();
  }

  void exchange(llvm::AtomicCmpXchgInst& exchange) {
    llvm::Value* expected = to_word(exchange.getCompareOperand());
    llvm::Value* old = compare_exchange(
        exchange.getPointerOperand(), expected, to_word(exchange.getNewValOperand()),
        order(exchange.getSuccessOrdering()), order(exchange.getFailureOrdering()));
    llvm::Value* both = llvm::UndefValue::get(exchange.getType());
    both = builder_.CreateInsertValue(both, from_word(old, exchange.getCompareOperand()->getType()),
                                      0);
    become(builder_.CreateInsertValue(both, builder_.CreateICmpEQ(old, expected), 1));
  }

  void update(llvm::AtomicRMWInst& update) {
    const llvm::StringRef name = name_of(update.getOperation());
    if (name.empty()) return loop(update);
    const unsigned bytes = size_of(update.getType());
    llvm::Value* old = call(name, bytes, word_of(bytes),
                            {to_word(update.getValOperand()), order(update.getOrdering())},
                            update.getPointerOperand());
    become(from_word(old, update.getType()));
  }

  void fence(llvm::FenceInst& fence) {
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getInt32Ty()}, false);
    builder_.CreateCall(declared("tombolo_dsm_atomic_fence", type), {order(fence.getOrdering())});
    fence.eraseFromParent();
  }

 private:
  // Operations that the runtime does not have, on floating-point numbers: by compare and exchange.
  void loop(llvm::AtomicRMWInst& update) {
    llvm::Type* type = update.getType();
    const unsigned bytes = size_of(type);
    llvm::Value* address = update.getPointerOperand();
    llvm::Value* first = call("load", bytes, word_of(bytes), {builder_.getInt32(0)}, address);
    llvm::BasicBlock* before = update.getParent();
    llvm::BasicBlock* after = before->splitBasicBlock(&update, "tombolo.updated");
    auto* again =
        llvm::BasicBlock::Create(update.getContext(), "tombolo.update", before->getParent(), after);
    before->getTerminator()->setSuccessor(0, again);
    builder_.SetInsertPoint(again);
    builder_.SetCurrentDebugLocation(update.getDebugLoc());
    llvm::PHINode* expected = builder_.CreatePHI(word_of(bytes), 2);
    llvm::Value* old = from_word(expected, type);
    llvm::Value* desired = to_word(combined(update, old));
    llvm::Value* found = compare_exchange(address, expected, desired, order(update.getOrdering()),
                                          builder_.getInt32(0));
    expected->addIncoming(first, before);
    expected->addIncoming(found, again);
    builder_.CreateCondBr(builder_.CreateICmpEQ(found, expected), after, again);
    update.replaceAllUsesWith(old);
    update.eraseFromParent();
  }

  llvm::Value* combined(llvm::AtomicRMWInst& update, llvm::Value* old) {
    llvm::Value* operand = update.getValOperand();
    switch (update.getOperation()) {
      case llvm::AtomicRMWInst::FAdd:
        return builder_.CreateFAdd(old, operand);
      case llvm::AtomicRMWInst::FSub:
        return builder_.CreateFSub(old, operand);
      default:
        tell(update,
             "virtual shared memory: an atomic operation that has no call: " +
                 llvm::AtomicRMWInst::getOperationName(update.getOperation()),
             llvm::DS_Error);
        return old;
    }
  }

  static llvm::StringRef name_of(Operation operation) {
    switch (operation) {
      case llvm::AtomicRMWInst::Xchg:
        return "exchange";
      case llvm::AtomicRMWInst::Add:
        return "fetch_add";
      case llvm::AtomicRMWInst::Sub:
        return "fetch_sub";
      case llvm::AtomicRMWInst::And:
        return "fetch_and";
      case llvm::AtomicRMWInst::Or:
        return "fetch_or";
      case llvm::AtomicRMWInst::Xor:
        return "fetch_xor";
      case llvm::AtomicRMWInst::Nand:
        return "fetch_nand";
      case llvm::AtomicRMWInst::Max:
        return "fetch_max";
      case llvm::AtomicRMWInst::Min:
        return "fetch_min";
      case llvm::AtomicRMWInst::UMax:
        return "fetch_umax";
      case llvm::AtomicRMWInst::UMin:
        return "fetch_umin";
      default:
        return "";
    }
  }

  llvm::Value* compare_exchange(llvm::Value* address, llvm::Value* expected, llvm::Value* desired,
                                llvm::Value* success, llvm::Value* failure) {
    const unsigned bytes = size_of(expected->getType());
    return call("compare_exchange", bytes, word_of(bytes), {expected, desired, success, failure},
                address);
  }

  llvm::CallInst* call(llvm::StringRef name, unsigned bytes, llvm::Type* result,
                       std::vector<llvm::Value*> arguments, llvm::Value* address) {
    llvm::Type* pointer = byte_pointer(builder_.getContext());
    arguments.insert(arguments.begin(),
                     builder_.CreatePointerBitCastOrAddrSpaceCast(address, pointer));
    std::vector<llvm::Type*> types;
    types.reserve(arguments.size());
    for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
    const std::string full = ("tombolo_dsm_atomic_" + name + "_" + llvm::Twine(bytes)).str();
    auto* made = builder_.CreateCall(declared(full, llvm::FunctionType::get(result, types, false)),
                                     arguments);
    // Narrow numbers come in whole registers: the caller extends them.
    for (unsigned i = 0; i < types.size(); ++i)
      if (bytes < 4 && types[i] == word_of(bytes)) made->addParamAttr(i, llvm::Attribute::ZExt);
    return made;
  }

  llvm::FunctionCallee declared(llvm::StringRef name, llvm::FunctionType* type) {
    auto found = instruction_.getModule()->getOrInsertFunction(name, type);
    if (auto* made = llvm::dyn_cast<llvm::Function>(found.getCallee())) {
      if (made->isDeclaration()) made->setVisibility(llvm::GlobalValue::HiddenVisibility);
      made->setDoesNotThrow();
    }
    return found;
  }

  unsigned size_of(llvm::Type* type) const {
    return instruction_.getModule()->getDataLayout().getTypeStoreSize(type);
  }
  llvm::Type* word_of(unsigned bytes) { return builder_.getIntNTy(bytes * 8); }
  llvm::Value* order(llvm::AtomicOrdering ordering) {
    return builder_.getInt32(static_cast<unsigned>(llvm::toCABI(ordering)));
  }
  llvm::Value* to_word(llvm::Value* value) {
    llvm::Type* word = word_of(size_of(value->getType()));
    if (value->getType()->isIntegerTy()) return builder_.CreateZExt(value, word);
    return builder_.CreateBitOrPointerCast(value, word);
  }
  llvm::Value* from_word(llvm::Value* word, llvm::Type* type) {
    if (type->isIntegerTy()) return builder_.CreateTrunc(word, type);
    return builder_.CreateBitOrPointerCast(word, type);
  }
  void become(llvm::Value* value) {
    instruction_.replaceAllUsesWith(value);
    instruction_.eraseFromParent();
  }

  llvm::Instruction& instruction_;
  llvm::IRBuilder<> builder_;
};

// ---- Which operations ---------------------------------------------------------------------------

struct Access {
  const llvm::Value* address = nullptr;  // null: a fence
  llvm::Type* type = nullptr;
  std::uint64_t alignment = 0;
};

std::optional<Access> access_of(const llvm::Instruction& instruction) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return Access{load->getPointerOperand(), load->getType(), load->getAlign().value()};
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return Access{store->getPointerOperand(), store->getValueOperand()->getType(),
                  store->getAlign().value()};
  if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
    return Access{update->getPointerOperand(), update->getType(), update->getAlign().value()};
  if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    return Access{exchange->getPointerOperand(), exchange->getNewValOperand()->getType(),
                  exchange->getAlign().value()};
  if (llvm::isa<llvm::FenceInst>(instruction)) return Access{};
  return std::nullopt;
}

bool is_for_other_threads(const llvm::Instruction& instruction) {
  if (!instruction.isAtomic()) return false;
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return load->getSyncScopeID() != llvm::SyncScope::SingleThread && !load->isUnordered();
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return store->getSyncScopeID() != llvm::SyncScope::SingleThread && !store->isUnordered();
  if (const auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction))
    return fence->getSyncScopeID() != llvm::SyncScope::SingleThread;
  return true;
}

bool refused(const llvm::Instruction& instruction, const Access& access) {
  if (access.type == nullptr) return false;
  const std::uint64_t bytes =
      instruction.getModule()->getDataLayout().getTypeStoreSize(access.type);
  const bool fits = bytes <= most_bytes && llvm::isPowerOf2_64(bytes);
  if (fits && access.alignment >= bytes) return false;
  const std::string why =
      fits ? "at an address that is no multiple of it" : "; it may have 1, 2, 4 or 8";
  tell(instruction,
       "virtual shared memory: an atomic operation of " + llvm::Twine(bytes) + " bytes" +
           (fits ? " " : "") + why,
       llvm::DS_Error);
  return true;
}

void refuse_library_call(const llvm::Instruction& instruction) {
  const llvm::Function* callee = callee_of(instruction);
  if (callee == nullptr || !callee->isDeclaration() || callee->isIntrinsic()) return;
  const llvm::StringRef name = callee->getName();
  if (!begins_with(name, "__atomic_") || name.contains("is_lock_free")) return;
  tell(instruction,
       "virtual shared memory: " + name +
           ", an operation of libatomic: atomic objects "
           "may have 1, 2, 4 or 8 bytes",
       llvm::DS_Error);
}

void replace(llvm::Instruction& instruction) {
  Replacement replacement(instruction);
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    replacement.load(*load);
  else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    replacement.store(*store);
  else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    replacement.exchange(*exchange);
  else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
    replacement.update(*update);
  else
    replacement.fence(llvm::cast<llvm::FenceInst>(instruction));
}

}  // namespace

unsigned replace_atomics(llvm::Function& function, PrivateMemory& memory) {
  std::vector<llvm::Instruction*> chosen;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    refuse_library_call(instruction);
    if (!is_for_other_threads(instruction)) continue;
    const std::optional<Access> access = access_of(instruction);
    if (!access || (access->address != nullptr && memory.holds(access->address))) continue;
    if (!refused(instruction, *access)) chosen.push_back(&instruction);
  }
  for (llvm::Instruction* instruction : chosen) replace(*instruction);
  if (!chosen.empty()) forget_memory_attributes(function);
  return static_cast<unsigned>(chosen.size());
}

bool is_runtime_call(const llvm::Function& callee) {
  return begins_with(callee.getName(), "tombolo_dsm_");
}

}  // namespace tombolo::dsm::compiler
