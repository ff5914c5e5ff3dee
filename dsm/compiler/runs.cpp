// SPDX-License-Identifier: Apache-2.0
// Purpose: see runs.h.
// Thread safety: see runs.h.
#include "dsm/compiler/runs.h"

#include <algorithm>

namespace tombolo::dsm::compiler {

namespace {

struct Piece {
  llvm::Instruction* store;
  std::size_t number;  // in the block
  std::int64_t offset;
  std::uint64_t bytes;

  std::int64_t end() const { return offset + static_cast<std::int64_t>(bytes); }
};

using Key = std::pair<llvm::Value*, unsigned>;  // the address that they are distances from; checked
using Pieces = llvm::MapVector<Key, std::vector<Piece>>;

// The part of a block after which a store may not happen, or happen in another span.
bool splits(const llvm::Instruction& instruction) {
  if (!llvm::isa<llvm::CallBase>(instruction)) return false;
  return !llvm::isa<llvm::AnyMemIntrinsic>(instruction) && instruction.mayHaveSideEffects();
}

Run one(const Piece& piece, const Key& key) {
  return {.before = piece.store, .base = key.first, .offset = piece.offset, .bytes = piece.bytes,
          .checked = key.second != 0, .stores = {piece.store}};
}

// `pieces` in the order of their offsets; the earliest store of a run is its place.
void join(const Key& key, std::vector<Piece>& pieces, std::vector<Run>& runs) {
  std::ranges::stable_sort(pieces, {}, &Piece::offset);
  std::size_t earliest = 0;
  std::int64_t end = 0;
  bool open = false;
  for (const Piece& piece : pieces) {
    if (!open || piece.offset > end) {
      runs.push_back(one(piece, key));
      earliest = piece.number;
      end = piece.end();
      open = true;
      continue;
    }
    Run& run = runs.back();
    run.stores.push_back(piece.store);
    end = std::max(end, piece.end());
    run.bytes = static_cast<std::uint64_t>(end - run.offset);
    if (piece.number < earliest) {
      earliest = piece.number;
      run.before = piece.store;
    }
  }
}

void flush(Pieces& pieces, std::vector<Run>& runs) {
  for (auto& [key, of_key] : pieces) join(key, of_key, runs);
  pieces.clear();
}

}  // namespace

std::vector<Run> take_runs(llvm::BasicBlock& block, std::vector<Chosen>& stores) {
  const llvm::DataLayout& layout = block.getModule()->getDataLayout();
  std::vector<Run> runs;
  std::vector<Chosen> others;
  Pieces pieces;
  auto next = stores.begin();
  std::size_t number = 0;
  for (llvm::Instruction& instruction : block) {
    if (splits(instruction)) flush(pieces, runs);
    for (; next != stores.end() && next->store.instruction == &instruction; ++next, ++number) {
      if (next->store.bytes == 0) {
        others.push_back(std::move(*next));
        continue;
      }
      llvm::Value* address = next->store.address;
      llvm::APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
      llvm::Value* base = address->stripAndAccumulateConstantOffsets(layout, offset, true);
      pieces[{base, next->checked ? 1 : 0}].push_back({.store = &instruction, .number = number,
                                               .offset = offset.getSExtValue(),
                                               .bytes = next->store.bytes});
    }
  }
  flush(pieces, runs);
  stores = std::move(others);
  return runs;
}

}  // namespace tombolo::dsm::compiler
