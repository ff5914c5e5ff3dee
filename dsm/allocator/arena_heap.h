// SPDX-License-Identifier: Apache-2.0
// Purpose: the heap of a program whose processes cache pages: that of dsm/allocator/. Its own data
// lie in words and in each process, and it renews the pages of blocks that change hands.
// Thread safety: as Heap.
#pragma once

#include <cstring>
#include <span>

#include "dsm/allocator/heap.h"
#include "dsm/allocator/memory_heap.h"

namespace tombolo::dsm {

class ArenaHeap final : public Heap {
 public:
  static WordIndex words(std::size_t bytes, Thread threads) {
    return MemoryHeap::words_for(bytes, threads);
  }

  // As MemoryHeap::open().
  Status open(ProgramMemory& memory, std::span<std::byte> room, WordIndex first_word) {
    return heap_.open(memory, room, first_word);
  }

  void* allocate(std::size_t bytes, std::size_t alignment, bool zero) override {
    return zero ? heap_.aligned_calloc(alignment, bytes) : heap_.aligned_alloc(alignment, bytes);
  }
  void free(void* block) override { heap_.free(block); }
  std::size_t usable(const void* block) const override { return heap_.usable_size(block); }
  void settle() override { heap_.settle(); }

 private:
  MemoryHeap heap_;
};

}  // namespace tombolo::dsm
