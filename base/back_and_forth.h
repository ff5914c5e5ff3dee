// SPDX-License-Identifier: Apache-2.0
// Purpose: walks over a large array block by block, every other time from its end. The blocks that
// a loop uses again (the buffer of its transfers) are then still in the cache, as many as fit. From
// the start each time, the first blocks drive out the last ones just before their turn.
// Invariants: every element is visited once; within a block the visitor's order holds.
// Thread safety: a thread has directions of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tombolo {

// Half of the smallest first level of the caches of hosts, and large enough that a call for each
// does not count.
inline constexpr std::size_t walk_block_bytes = 16384;
// Up to this size a walk from the start is as fast.
inline constexpr std::size_t walk_from_bytes = 2 * walk_block_bytes;

namespace detail {
// A bit for each of 64 groups of arrays by address, so that a loop with several turns each of them.
// Two arrays of one group only turn more often than they should.
inline thread_local std::uint64_t walked_from_the_end = 0;
}  // namespace detail

// Asked once for each walk over `array`: whether it is the turn of one from the end.
inline bool walk_from_the_end(const void* array) {
  const auto page = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(array)) >> 12;
  const std::uint64_t bit = std::uint64_t{1} << (page * 0x9e3779b97f4a7c15u >> 58);
  return ((detail::walked_from_the_end ^= bit) & bit) != 0;
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
  walk(bytes, walk_block_bytes, walk_from_the_end(to), [&](std::size_t first, std::size_t n) {
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                n);
  });
}

}  // namespace tombolo
