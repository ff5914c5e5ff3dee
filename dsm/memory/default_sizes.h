// SPDX-License-Identifier: Apache-2.0
// Purpose: the sizes of a program's memory that its user has not given, by the memory of the host.
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dsm/protocol/shape.h"

namespace tombolo::dsm {

// Of a heap whose pages are cached: an eighth of the room; less where the pages of so many
// processes can then lie in place (docs/decisions/0049), which wants all of the memory as often as
// there are processes and once more, and where that is half of an eighth at least. `others`: bytes
// of the memory besides the heap.
constexpr std::uint64_t default_heap_bytes(std::uint64_t room, Thread processes,
                                           std::uint64_t others) {
  const std::uint64_t usual = room / 8;
  // Once more than is needed: the room changes until it is looked at again.
  const std::uint64_t part = room / (std::uint64_t{processes} + 2);
  return part >= others + usual / 2 ? std::min(usual, part - others) : usual;
}

// Of each cache: those of all threads take a quarter of the room at most. `least`: as many bytes a
// cache has in any case.
constexpr std::uint64_t default_cache_bytes(std::uint64_t room, Thread threads,
                                            std::uint64_t least) {
  constexpr std::uint64_t most = std::uint64_t{256} << 20;
  constexpr std::uint64_t fewest_parts = 64;
  const std::uint64_t parts = std::max(fewest_parts, std::uint64_t{threads} * 4);
  return std::clamp(room / parts, least, most);
}

}  // namespace tombolo::dsm
