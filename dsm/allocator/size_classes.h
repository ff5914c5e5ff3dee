// SPDX-License-Identifier: Apache-2.0
// Purpose: the sizes of the blocks of arenas: 16 to 128 bytes in steps of 16, then four sizes for
// each doubling, to one page of 4 KiB. Of a block of more than 128 bytes at most a fifth was not
// asked for.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dsm/allocator/heap_words.h"

namespace tombolo::dsm {

// From 0.
using SizeClass = std::uint8_t;

// 003 section 5.4: arenas serve all below 4 KB. A block of just a page has no other page's bytes:
// it is served here too, which needs no lock.
inline constexpr std::size_t most_in_arena = 4096;
// The alignment of every block.
inline constexpr std::size_t least_alignment = 16;

struct SizeClasses {
  static constexpr std::size_t count = 28;

  static constexpr std::array<std::uint16_t, count> sizes = [] {
    std::array<std::uint16_t, count> made{};
    std::size_t size = 0;
    std::size_t step = least_alignment;
    for (std::uint16_t& s : made) {
      size += step;
      s = static_cast<std::uint16_t>(size);
      if (size >= 128 && (size & (size - 1)) == 0) step = size / 4;
    }
    return made;
  }();

  // The class of the smallest block for i * 16 bytes.
  static constexpr std::array<SizeClass, most_in_arena / least_alignment + 1> of_units = [] {
    std::array<SizeClass, most_in_arena / least_alignment + 1> made{};
    SizeClass at = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (i * least_alignment > sizes[at]) ++at;
      made[i] = at;
    }
    return made;
  }();
};
static_assert(SizeClasses::sizes.back() == most_in_arena);

constexpr std::size_t block_bytes(SizeClass c) { return SizeClasses::sizes[c]; }
constexpr std::uint64_t blocks_per_chunk(SizeClass c) { return chunk_bytes / block_bytes(c); }

// The number of the block with the byte at `offset` in its chunk: a product with the rounded up
// reciprocal, which is exact for offsets below 2^16 and sizes to 4096.
constexpr std::uint64_t block_at(SizeClass c, std::uint64_t offset) {
  constexpr auto reciprocals = [] {
    std::array<std::uint64_t, SizeClasses::count> made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = ((std::uint64_t{1} << 32) + SizeClasses::sizes[i] - 1) / SizeClasses::sizes[i];
    return made;
  }();
  return offset * reciprocals[c] >> 32;
}

// Nothing if blocks of that size, or at such an alignment (a power of two), are not of arenas.
inline std::optional<SizeClass> size_class_of(std::size_t bytes, std::size_t alignment) {
  if (bytes > most_in_arena || alignment > most_in_arena) return std::nullopt;
  SizeClass c = SizeClasses::of_units[(bytes + least_alignment - 1) / least_alignment];
  // Chunks begin at multiples of all these alignments.
  while (block_bytes(c) % alignment != 0) ++c;
  return c;
}

}  // namespace tombolo::dsm
