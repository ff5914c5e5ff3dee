// SPDX-License-Identifier: Apache-2.0
// Purpose: the heap of a program, in its memory: any thread frees blocks of any other.
// Thread safety: an object belongs to one thread, as its ProgramMemory does.
#pragma once

#include <cstddef>

namespace tombolo::dsm {

class Heap {
 public:
  virtual ~Heap() = default;
  // `alignment` is a power of 2. Null if there is no memory left. `zero`: it holds zeros.
  virtual void* allocate(std::size_t bytes, std::size_t alignment, bool zero) = 0;
  // `block` came from allocate() of any thread.
  virtual void free(void* block) = 0;
  // Bytes that may be used, at least those that were asked for.
  virtual std::size_t usable(const void* block) const = 0;
  // This thread waits for long: blocks of others that it has freed may be had again.
  virtual void settle() {}
};

}  // namespace tombolo::dsm
