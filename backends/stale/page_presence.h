// SPDX-License-Identifier: Apache-2.0
// Purpose: which blocks of a large, mostly untouched range may hold anything but zeros, so that a
// window of 8 GiB of which a program uses three pages costs three pages.
//
// Invariants: PG1 when in doubt a block counts as touched: where the kernel does not tell, where
//                 memory could be in the swap, where an image is a mapped file.
// Cost: two system calls for each MiB of the range.
// Thread safety: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tombolo::stale {

inline constexpr std::size_t page_block = 4096;  // bytes of a block of a range

// `image` and the bytes that follow are private memory of this process, zero where never touched.
bool is_anonymous(const std::byte* image, std::size_t bytes);

// Something is mapped at every byte of [start, start + bytes).
bool is_mapped(const std::byte* start, std::size_t bytes);

// Marks in touched[i] the blocks i of [start, start + bytes) that may differ from zero.
void mark_touched_private(const std::byte* start, std::size_t bytes,
                          std::vector<std::uint8_t>& touched);
// The same for memory shared with other processes, which may have touched it.
void mark_touched_shared(const std::byte* start, std::size_t bytes,
                         std::vector<std::uint8_t>& touched);

}  // namespace tombolo::stale
