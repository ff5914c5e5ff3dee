// SPDX-License-Identifier: Apache-2.0
// Purpose: see stores.h; calls of the C library are in library_stores.cpp.
// Thread safety: see stores.h.
#include "dsm/compiler/analysis/stores.h"

#include "dsm/compiler/analysis/library_stores.h"

namespace tombolo::dsm::compiler {

namespace {

using llvm::Intrinsic::ID;

std::vector<Store> sized(llvm::Instruction& instruction, llvm::Value* address, llvm::Type* type,
                         const llvm::DataLayout& layout) {
  if (const auto bytes = stored_bytes(layout, type))
    return {{.instruction = &instruction, .address = address, .bytes = *bytes, .ranges = {}}};
  // A vector whose length the processor knows: a multiple of the least one.
  const std::uint64_t least = layout.getTypeStoreSize(type).getKnownMinValue();
  const MakeRanges ranges = [address, least](llvm::IRBuilderBase& builder) {
    return std::vector<ByteRange>{
        {.address = address, .bytes = builder.CreateVScale(builder.getInt64(least))}};
  };
  return {{.instruction = &instruction, .address = address, .ranges = ranges}};
}

std::vector<Store> copied(llvm::AnyMemIntrinsic& copy) {
  llvm::Value* address = copy.getRawDest();
  llvm::Value* length = copy.getLength();
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(length)) {
    if (constant->isZero()) return {};
    return {{.instruction = &copy,
             .address = address,
             .bytes = constant->getZExtValue(),
             .ranges = {}}};
  }
  const MakeRanges ranges = [address, length](llvm::IRBuilderBase&) {
    return std::vector<ByteRange>{{.address = address, .bytes = length}};
  };
  return {{.instruction = &copy, .address = address, .ranges = ranges}};
}

// ---- Vectors under a mask -----------------------------------------------------------------------

struct Lanes {
  unsigned count;
  std::uint64_t bytes;  // of each
};

Lanes lanes_of(const llvm::Value* vector, const llvm::DataLayout& layout) {
  const auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  return {.count = type->getNumElements(),
          .bytes = layout.getTypeStoreSize(type->getElementType())};
}

llvm::Value* moved(llvm::IRBuilderBase& builder, llvm::Value* address, std::uint64_t bytes) {
  llvm::Value* first =
      builder.CreatePointerBitCastOrAddrSpaceCast(address, byte_pointer(builder.getContext()));
  return builder.CreateGEP(builder.getInt8Ty(), first, builder.getInt64(bytes));
}

std::vector<ByteRange> masked_lanes(llvm::IRBuilderBase& builder, llvm::Value* address, Lanes lanes,
                                    llvm::Value* mask) {
  std::vector<ByteRange> ranges;
  for (unsigned lane = 0; lane < lanes.count; ++lane)
    ranges.push_back({.address = moved(builder, address, lane * lanes.bytes),
                      .bytes = builder.getInt64(lanes.bytes),
                      .stored = builder.CreateExtractElement(mask, lane)});
  return ranges;
}

std::vector<ByteRange> scattered_lanes(llvm::IRBuilderBase& builder, llvm::Value* addresses,
                                       Lanes lanes, llvm::Value* mask) {
  std::vector<ByteRange> ranges;
  for (unsigned lane = 0; lane < lanes.count; ++lane)
    ranges.push_back({.address = builder.CreateExtractElement(addresses, lane),
                      .bytes = builder.getInt64(lanes.bytes),
                      .stored = builder.CreateExtractElement(mask, lane)});
  return ranges;
}

// The lanes of the mask, one after the other without gaps.
std::vector<ByteRange> compressed_lanes(llvm::IRBuilderBase& builder, llvm::Value* address,
                                        Lanes lanes, llvm::Value* mask) {
  llvm::Value* bits = builder.CreateBitCast(mask, builder.getIntNTy(lanes.count));
  llvm::Value* wide = builder.CreateZExt(bits, builder.getInt64Ty());
  llvm::Value* count = builder.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, wide);
  return {{.address = address, .bytes = builder.CreateMul(count, builder.getInt64(lanes.bytes))}};
}

using MakeLanes = std::vector<ByteRange> (*)(llvm::IRBuilderBase&, llvm::Value*, Lanes,
                                             llvm::Value*);

std::vector<Store> masked(llvm::IntrinsicInst& call, MakeLanes make, unsigned mask_at,
                          const llvm::DataLayout& layout) {
  llvm::Value* vector = call.getArgOperand(0);
  llvm::Value* address = call.getArgOperand(1);
  llvm::Value* mask = call.getArgOperand(mask_at);
  if (!llvm::isa<llvm::FixedVectorType>(vector->getType())) return {};
  const Lanes lanes = lanes_of(vector, layout);
  const MakeRanges ranges = [=](llvm::IRBuilderBase& builder) {
    return make(builder, address, lanes, mask);
  };
  return {{.instruction = &call, .address = address, .ranges = ranges}};
}

std::vector<Store> of_intrinsic(llvm::IntrinsicInst& call, const llvm::DataLayout& layout) {
  if (auto* copy = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&call)) return copied(*copy);
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_store:
      return masked(call, masked_lanes, 3, layout);
    case llvm::Intrinsic::masked_scatter:
      return masked(call, scattered_lanes, 3, layout);
    case llvm::Intrinsic::masked_compressstore:
      return masked(call, compressed_lanes, 2, layout);
    default:
      return {};
  }
}

}  // namespace

std::vector<Store> stores_of(llvm::Instruction& instruction, const llvm::DataLayout& layout) {
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return sized(*store, store->getPointerOperand(), store->getValueOperand()->getType(), layout);
  // Those on memory of other threads have become calls before.
  if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
    return sized(*update, update->getPointerOperand(), update->getType(), layout);
  if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    return sized(*exchange, exchange->getPointerOperand(), exchange->getNewValOperand()->getType(),
                 layout);
  if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    return of_intrinsic(*intrinsic, layout);
  if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) return library_stores(*call);
  return {};
}

}  // namespace tombolo::dsm::compiler
