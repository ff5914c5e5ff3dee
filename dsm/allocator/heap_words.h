// SPDX-License-Identifier: Apache-2.0
// Purpose: the words that the threads of a program share for its heap, and their places. All that
// several threads have to know of a block is in them, and nothing is in the pages: words are seen
// at once under every protocol, and cost no page fault.
//
//   once        the lock of pages and chunks, two places to begin a search at, chunks in use and
//               their peak, the list of zones
//   a thread    the list of chunks with blocks that other threads have freed
//   a group     of 64 chunks: chunks in use, chunks that were ever in use, its zone, its pages
//   a chunk     of 64 KiB: its note, and the blocks of it that other threads have freed
//
// Invariants: DAW1 all words are zero at first, and that is an empty heap of memory that was never
//                  used.
//             DAW2 the note of a chunk is 0 if no block begins in it. With a live block it does not
//                  change, but by realloc() of that block: it may be read without the lock.
// Memory: 0.9 % of the heap's.
// Thread safety: plain values.
#pragma once

#include <algorithm>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

// A chunk of a heap, from 0.
using Chunk = std::uint64_t;

inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
inline constexpr Chunk chunks_per_group = 64;
inline constexpr std::size_t group_bytes = chunk_bytes * chunks_per_group;

enum class Tier : std::uint8_t { none, arena, zone, striped };

// The contents of a chunk's note: all that free() must know of an address.
struct ChunkNote {
  Tier tier = Tier::none;
  std::uint8_t size_class = 0;  // of an arena's
  std::uint64_t number = 0;     // the owner of an arena's, the chunks of a striped block

  static ChunkNote unpack(std::uint64_t v) {
    return {.tier = static_cast<Tier>(v & 0xff),
            .size_class = static_cast<std::uint8_t>(v >> 8 & 0xff),
            .number = v >> 16};
  }
  std::uint64_t pack() const {
    return static_cast<std::uint64_t>(tier) | std::uint64_t{size_class} << 8 | number << 16;
  }
  Thread owner() const { return static_cast<Thread>(number); }
};

class HeapWords {
 public:
  HeapWords() = default;
  HeapWords(WordIndex first, Chunk chunks, Thread threads)
      : first_(first), chunks_(chunks), threads_(threads) {}

  Chunk chunks() const { return chunks_; }
  std::uint64_t groups() const { return (chunks_ + chunks_per_group - 1) / chunks_per_group; }
  WordIndex end() const { return chunk(groups() * chunks_per_group, 0); }

  WordIndex lock() const { return first_; }
  WordIndex lowest() const { return first_ + line; }
  WordIndex highest() const { return first_ + line + 1; }
  WordIndex chunks_in_use() const { return first_ + line + 2; }
  WordIndex most_in_use() const { return first_ + line + 3; }
  WordIndex zones() const { return first_ + line + 4; }

  WordIndex returned(Thread thread) const { return first_ + (2 + thread) * line; }

  // Of all groups one after the other: a bit for each chunk.
  WordIndex used() const { return first_ + (2 + WordIndex{threads_}) * line; }
  WordIndex used_before() const { return used() + groups(); }
  WordIndex zone(std::uint64_t group) const { return used_before() + groups() + group; }
  // Of all groups likewise: a bit for each page.
  WordIndex pages_used() const { return zone(groups()); }
  WordIndex pages_last() const { return pages_used() + groups() * page_words_per_group; }

  WordIndex note(Chunk c) const { return chunk(c, 0); }
  WordIndex next(Chunk c) const { return chunk(c, 1); }
  WordIndex returned_words(Chunk c) const { return chunk(c, 2); }
  WordIndex returned_blocks(Chunk c, std::uint64_t word) const { return chunk(c, line + word); }

  // Pages of 4 KiB: there are at most as many.
  static constexpr std::uint64_t page_words_per_group = group_bytes / 4096 / 64;
  // Blocks are 16 bytes or more.
  static constexpr std::uint64_t returned_words_per_chunk = chunk_bytes / 16 / 64;

 private:
  // Words that different threads write often are a cache line apart where words lie side by side.
  static constexpr WordIndex line = 8;
  static constexpr WordIndex words_per_chunk = line + returned_words_per_chunk;

  WordIndex chunk(Chunk c, WordIndex index) const {
    return pages_last() + groups() * page_words_per_group + c * words_per_chunk + index;
  }

  WordIndex first_ = 0;
  Chunk chunks_ = 0;
  Thread threads_ = 0;
};

}  // namespace tombolo::dsm
