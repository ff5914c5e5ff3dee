// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory that a program has mapped: blocks of its heap, parts of which it may unmap,
// and map anew in their places.
//
//   std::byte* at = mappings.map(16 * page);   // zeros
//   mappings.unmap({at, at + 3 * page});       // the rest stays
//   mappings.holds({at + 3 * page, ...});      // true
//
// Invariants: MPP1 a block goes back to the heap once the last of its pages is unmapped, and not
//                  before.
//             MPP2 the list of pieces changes in spans of the lock.
// Limits: unmap() and holds() look at all pieces.
// Thread safety: an object belongs to one thread, as its ProgramMemory does.
#pragma once

#include "dsm/allocator/heap.h"
#include "dsm/threads/program_memory.h"
#include "host/memory/address_space.h"

namespace tombolo::dsm {

class Mappings {
 public:
  static constexpr WordIndex words = 1;
  static constexpr Lock locks = 1;

  // `word` and `lock`: the object's.
  Mappings(ProgramMemory& memory, Heap& heap, WordIndex word, Lock lock)
      : memory_(memory), heap_(heap), list_(word), lock_(lock) {}

  // Whole pages; null if there is no memory left.
  std::byte* map(std::size_t bytes);
  // As far as it is mapped. `discard`, if any, is called for the parts of blocks that stay.
  void unmap(const host::AddressRange& range, void (*discard)(const host::AddressRange&));
  // Whether all of it is mapped.
  bool holds(const host::AddressRange& range);

 private:
  // In the heap.
  struct Piece {
    Piece* next;
    host::AddressRange pages;
    std::byte* block;
  };
  class Held;
  Piece* first();
  Piece* new_piece(const host::AddressRange& pages, std::byte* block);
  void put_first(Piece* piece);
  void cut(Piece& piece, const host::AddressRange& range);
  bool is_in_use(const std::byte* block);

  ProgramMemory& memory_;
  Heap& heap_;
  WordIndex list_;  // the address of the first piece, or 0
  Lock lock_;
};

}  // namespace tombolo::dsm
