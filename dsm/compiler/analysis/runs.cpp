// SPDX-License-Identifier: Apache-2.0
// Purpose: see runs.h.
// Thread safety: see runs.h.
#include "dsm/compiler/analysis/runs.h"

#include <algorithm>
#include <span>

namespace tombolo::dsm::compiler {

namespace {

struct Piece {
  llvm::Instruction* store;
  llvm::Value* address;
  std::size_t number;  // in the block
  std::int64_t offset;
  std::uint64_t bytes;

  std::int64_t end() const { return offset + static_cast<std::int64_t>(bytes); }
};

// Stores whose distances from each other are constant.
struct Group {
  const llvm::SCEV* origin;  // the first one's address
  bool checked;
  std::vector<Piece> pieces;
};

constexpr std::size_t most_groups = 16;  // that a store is compared with

// The part of a block after which a store may not happen, or happen in another span.
bool splits(const llvm::Instruction& instruction) {
  if (!llvm::isa<llvm::CallBase>(instruction)) return false;
  return !llvm::isa<llvm::AnyMemIntrinsic>(instruction) && instruction.mayHaveSideEffects();
}

std::optional<std::int64_t> distance(const llvm::SCEV* to, const llvm::SCEV* from,
                                     llvm::ScalarEvolution& evolution) {
  const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(evolution.getMinusSCEV(to, from));
  if (constant == nullptr) return std::nullopt;
  return constant->getAPInt().getSExtValue();
}

// `piece` has no offset yet.
void add(Piece piece, bool checked, std::vector<Group>& groups, llvm::ScalarEvolution& evolution) {
  const llvm::SCEV* address = evolution.getSCEV(piece.address);
  const std::size_t first = groups.size() - std::min(groups.size(), most_groups);
  for (std::size_t i = first; i < groups.size(); ++i) {
    if (groups[i].checked != checked) continue;
    if (const auto offset = distance(address, groups[i].origin, evolution)) {
      piece.offset = *offset;
      groups[i].pieces.push_back(piece);
      return;
    }
  }
  groups.push_back({.origin = address, .checked = checked, .pieces = {piece}});
}

// Pieces that touch or overlap. The first store of them has the place.
Run joined(std::span<const Piece> pieces, std::int64_t end, bool checked) {
  const Piece& earliest = *std::ranges::min_element(pieces, {}, &Piece::number);
  Run run{.before = earliest.store,
          .address = earliest.address,
          .offset = pieces.front().offset - earliest.offset,
          .bytes = static_cast<std::uint64_t>(end - pieces.front().offset),
          .checked = checked,
          .stores = {}};
  for (const Piece& piece : pieces) run.stores.push_back(piece.store);
  return run;
}

void join(Group& group, std::vector<Run>& runs) {
  std::vector<Piece>& pieces = group.pieces;
  std::ranges::stable_sort(pieces, {}, &Piece::offset);
  for (std::size_t first = 0, next; first < pieces.size(); first = next) {
    std::int64_t end = pieces[first].end();
    for (next = first + 1; next < pieces.size() && pieces[next].offset <= end; ++next)
      end = std::max(end, pieces[next].end());
    runs.push_back(joined(std::span(pieces).subspan(first, next - first), end, group.checked));
  }
}

void flush(std::vector<Group>& groups, std::vector<Run>& runs) {
  for (Group& group : groups) join(group, runs);
  groups.clear();
}

}  // namespace

std::vector<Run> take_runs(llvm::BasicBlock& block, std::vector<Chosen>& stores,
                           llvm::ScalarEvolution& evolution) {
  std::vector<Run> runs;
  std::vector<Chosen> others;
  std::vector<Group> groups;
  auto next = stores.begin();
  std::size_t number = 0;
  for (llvm::Instruction& instruction : block) {
    if (splits(instruction)) flush(groups, runs);
    for (; next != stores.end() && next->store.instruction == &instruction; ++next, ++number) {
      if (next->store.bytes == 0) {
        others.push_back(std::move(*next));
        continue;
      }
      add({.store = &instruction,
           .address = next->store.address,
           .number = number,
           .offset = 0,
           .bytes = next->store.bytes},
          next->checked, groups, evolution);
    }
  }
  flush(groups, runs);
  stores = std::move(others);
  return runs;
}

}  // namespace tombolo::dsm::compiler
