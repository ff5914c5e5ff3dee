// SPDX-License-Identifier: Apache-2.0
// Purpose: a simple heap: blocks of some 170 sizes, with a list of free ones for each size, and
// behind the blocks the memory that was never used.
//
// Invariants: CHP1 the list of a size, and the links in its blocks, change in spans of its lock.
//             CHP2 a block's size is in front of it and never changes.
//             CHP3 memory that was never used is zero.
// Thread safety: as Heap.
#pragma once

#include <cstdint>
#include <span>

#include "dsm/allocator/heap.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class ClassHeap final : public Heap {
 public:
  static constexpr unsigned classes = 168;
  static constexpr WordIndex words = classes + 1;
  static constexpr Lock locks = classes;

  // `first_word` and `first_lock`: of those that are the heap's.
  ClassHeap(ProgramMemory& memory, std::span<std::byte> room, WordIndex first_word, Lock first_lock)
      : memory_(memory),
        room_(room),
        used_(first_word),
        lists_(first_word + 1),
        lock_(first_lock) {}

  void* allocate(std::size_t bytes, std::size_t alignment, bool zero) override;
  void free(void* block) override;
  std::size_t usable(const void* block) const override;

 private:
  struct Head;
  std::byte* pop(unsigned size_class);
  std::byte* take_unused(std::size_t bytes);

  ProgramMemory& memory_;
  std::span<std::byte> room_;
  WordIndex used_;   // bytes of the room that were used at some time
  WordIndex lists_;  // of each class: the first free block's place in the room + 1, or 0
  Lock lock_;
};

}  // namespace tombolo::dsm
