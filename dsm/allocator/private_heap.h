// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of this process alone, for the runtime itself, and for blocks that libraries ask
// for before the program's heap is there. It takes nothing from the C library's heap and none of
// the addresses behind the program's variables.
// Thread safety: yes.
#pragma once

#include <cstddef>

namespace tombolo::dsm {

class PrivateHeap {
 public:
  // Null if there is no memory left. It holds zeros, or the bytes of a freed block.
  static void* allocate(std::size_t bytes, std::size_t alignment = 16);
  static void free(void* block);
  static std::size_t usable(const void* block);
  // Whether the block is one of it.
  static bool has(const void* block);
};

}  // namespace tombolo::dsm
