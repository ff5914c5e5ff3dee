// SPDX-License-Identifier: Apache-2.0
// Purpose: walks over a large array block by block, every other time from its end: what is used
// again soon (the buffer of a loop's transfers) is found in the cache as far as the cache goes.
// From the start each time, the first blocks drive out the last ones just before their turn.
// Invariants: every element is visited once; within a block the visitor's order holds.
// Thread safety: a thread has a direction of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tombolo {

// Smaller than the first level of any processor's caches, and large enough that a call for each
// does not count.
inline constexpr std::size_t kWalkBlockBytes = 16384;
// Up to this size a walk from the start is as fast.
inline constexpr std::size_t kWalkFromBytes = 2 * kWalkBlockBytes;

namespace detail {
inline thread_local bool last_walk_from_the_end = false;
}

// Asked once for each walk: whether it is the turn of one from the end.
inline bool walk_from_the_end() {
  return detail::last_walk_from_the_end = !detail::last_walk_from_the_end;
}

// visit(first, n) for blocks of at most `per_block` elements.
template <class Visit>
void walk(std::size_t elements, std::size_t per_block, bool from_the_end, Visit&& visit) {
  const std::size_t blocks = (elements + per_block - 1) / per_block;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t first = (from_the_end ? blocks - 1 - i : i) * per_block;
    visit(first, std::min(per_block, elements - first));
  }
}

// memcpy.
[[gnu::noinline]] inline void copy_back_and_forth(void* to, const void* from, std::size_t bytes) {
  walk(bytes, kWalkBlockBytes, walk_from_the_end(), [&](std::size_t first, std::size_t n) {
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                n);
  });
}

}  // namespace tombolo
