// SPDX-License-Identifier: Apache-2.0
// Purpose: lets malloc take large blocks from the heap, as it does by itself once a program has
// freed a block of that size. Blocks that are mappings of their own cannot stay in the image
// (own_memory.h), since realloc moves mappings: each window over one would move all its pages
// there and back.
// Thread safety: yes; meant for the start of the program, before its blocks are allocated.
#pragma once

#include <cstddef>

namespace tombolo::host {

// The largest that glibc has its own rule go to.
inline constexpr std::size_t most_on_heap_bytes = std::size_t{32} << 20;

// Of the blocks to come those of at most `most_on_heap_bytes` lie on the heap, and up to twice as
// much that is free at its end stays. False, and nothing has changed, if the user has set the
// allocator's own variables (MALLOC_*, GLIBC_TUNABLES), or there is another allocator.
bool take_large_blocks_from_heap();

}  // namespace tombolo::host
