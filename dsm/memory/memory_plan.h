// SPDX-License-Identifier: Apache-2.0
// Purpose: how much memory an unchanged program has, and where it lies.
// Thread safety: as a value.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

struct MemoryPlan {
  std::span<std::byte> at = {};  // whole pages; nothing lies there but the filled part
  std::size_t filled = 0;        // bytes at its start, whole pages: the program's variables
  Thread threads = 1;            // at most
  Lock locks = 1;
  WordIndex words = 1;
  std::vector<std::byte*> closed = {};  // pages of it that the program may not access
};

}  // namespace tombolo::dsm
