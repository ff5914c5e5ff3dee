// SPDX-License-Identifier: Apache-2.0
// Purpose: blocks of a thread's arenas that other threads have freed, on their way back to it. Each
// block has a bit, and the chunks that have some are in a list. No thread waits, and nothing can be
// full.
//
//   give    the block's bit; the first of a word marks the word; the first word of a chunk links
//           the chunk into its owner's list: one atomic for most blocks, at most five
//   take    all of the list, all marked words, all their bits
//
// (A queue of addresses would be bounded: if its owner slept, a thread that frees would have to
// wait for it, or keep the block.)
//
// Invariants: DAR1 bits are there before their word is marked, and the mark before the chunk is
//                  linked: the owner, which goes the other way, finds all, or leaves a mark or a
//                  link to come that announces the rest.
//             DAR2 a word is marked by the thread that has changed it from 0. Only the owner
//                  empties it, after it has taken the mark: so it is marked once.
//             DAR3 a chunk is linked by the thread that has changed its marks from 0. The owner
//                  reads the link before it takes the marks: after that another thread may link the
//                  chunk anew.
//             DAR4 once all blocks of a chunk have been taken, no thread has anything left to do to
//                  its words: the chunk may have another owner.
// Waits: none. Give is repeated where two threads link chunks of one owner at once.
// Thread safety: one object for each thread.
#pragma once

#include <bit>

#include "dsm/allocator/heap_words.h"

namespace tombolo::dsm {

class ReturnedBlocks {
 public:
  ReturnedBlocks(ProgramMemory& memory, const HeapWords& words) : memory_(memory), words_(words) {}

  // Blocks of one word of a chunk, by any thread. False if one of them was there already: it has
  // been freed twice.
  [[nodiscard]] bool give(Thread owner, Chunk chunk, std::uint64_t word, std::uint64_t blocks) {
    const std::uint64_t before = memory_.fetch_add(words_.returned_blocks(chunk, word), blocks);
    if (before == 0) mark(owner, chunk, word);
    return (before & blocks) == 0;
  }

  bool any(Thread owner) const { return memory_.load(words_.returned(owner)) != 0; }

  // By the owner. Calls body(chunk, word, blocks) for all that has been announced.
  template <class Body>
  void take(Thread self, Body&& body) {
    std::uint64_t next = memory_.exchange(words_.returned(self), 0);
    while (next != 0) {
      const Chunk chunk = next - 1;
      // Before the marks are taken (DAR3).
      next = memory_.load(words_.next(chunk));
      take_chunk(chunk, body);
    }
  }

 protected:
  void mark(Thread owner, Chunk chunk, std::uint64_t word) {
    const std::uint64_t mark = std::uint64_t{1} << word;
    if (memory_.fetch_add(words_.returned_words(chunk), mark) == 0) link(owner, chunk);
  }

  void link(Thread owner, Chunk chunk) {
    std::uint64_t first = memory_.load(words_.returned(owner));
    for (;;) {
      // Before the owner can find the chunk.
      memory_.store(words_.next(chunk), first);
      const std::uint64_t found =
          memory_.compare_exchange(words_.returned(owner), first, chunk + 1);
      if (found == first) return;
      first = found;
    }
  }

  template <class Body>
  void take_chunk(Chunk chunk, Body& body) {
    std::uint64_t marked = memory_.exchange(words_.returned_words(chunk), 0);
    for (; marked != 0; marked &= marked - 1) {
      const auto word = static_cast<std::uint64_t>(std::countr_zero(marked));
      body(chunk, word, memory_.exchange(words_.returned_blocks(chunk, word), 0));
    }
  }

  ProgramMemory& memory_;
  const HeapWords& words_;
};

}  // namespace tombolo::dsm
