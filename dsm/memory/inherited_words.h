// SPDX-License-Identifier: Apache-2.0
// Purpose: the words and locks of a program on one coherent host, whose processes have inherited
// them by a fork (mapped_memory.h).
// Thread safety: any thread may enter.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "dsm/memory/mapped_memory.h"
#include "dsm/memory/memory_plan.h"
#include "runtime/engines/host_core.h"

namespace tombolo::dsm {

// The words and locks lie in one block, of its first process: the others are not
// there yet when it is made.
class InheritedWords {
 public:
  using Memory = MappedMemory<runtime::HostCore>;

  explicit InheritedWords(const MemoryPlan& plan);
  std::size_t bytes() const { return bytes_; }
  // `block`: zeros at first.
  std::unique_ptr<Memory> enter(Thread self, std::byte* block, const Observer& observer) const;

 private:
  Shape shape_;
  std::span<std::byte> pages_;
  Memory::Layout layout_;
  std::size_t bytes_;
};

}  // namespace tombolo::dsm
