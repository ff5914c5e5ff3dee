// SPDX-License-Identifier: Apache-2.0
// Purpose: hands out the chunks of a heap: runs from its low end for striped blocks, which find
// room above them when they grow; single chunks for arenas, and zones, from its high end.
//
// Invariants: DAC1 a chunk is marked as used before when it is given back, not when it is claimed:
//                  as long as it is claimed, the mark tells whether it held anything earlier.
//             DAC2 chunks below `lowest` are in use, and the last `highest` ones: where a search
//                  begins.
// Thread safety: the holder of the heap's lock; used_before() of its own chunks: any thread.
#pragma once

#include "dsm/allocator/heap_words.h"
#include "dsm/allocator/word_bits.h"

namespace tombolo::dsm {

class ChunkMap {
 public:
  // `base`: the heap's address, in chunks.
  ChunkMap(ProgramMemory& memory, const HeapWords& words, std::uint64_t base)
      : memory_(memory),
        words_(words),
        base_(base),
        used_(memory, words.used()),
        used_before_(memory, words.used_before()) {}

  // The lowest run, at a multiple of `alignment` chunks.
  std::optional<Chunk> claim_lowest(std::uint64_t count, std::uint64_t alignment) {
    const Chunk from = used_.find(false, memory_.load(words_.lowest()), words_.chunks());
    memory_.store(words_.lowest(), from);
    return claim(used_.clear_run(from, words_.chunks(), count, alignment, base_), count);
  }

  std::optional<Chunk> claim_highest() {
    const std::optional<Chunk> last =
        used_.last_clear(words_.chunks() - memory_.load(words_.highest()));
    memory_.store(words_.highest(), words_.chunks() - (last ? *last + 1 : 0));
    return claim(last, 1);
  }

  std::optional<Chunk> claim_in_group(std::uint64_t group, std::uint64_t count) {
    const Chunk from = group * chunks_per_group;
    const Chunk to = std::min(words_.chunks(), from + chunks_per_group);
    return claim(used_.clear_run(from, to, count), count);
  }

  // These very chunks. False, and nothing has changed, if one is in use or past the end.
  bool claim_at(Chunk first, std::uint64_t count) {
    const Chunk to = std::min(words_.chunks(), first + count);
    return claim(used_.clear_run(first, to, count), count).has_value();
  }

  void release(Chunk first, std::uint64_t count) {
    used_before_.set(first, first + count);
    used_.clear(first, first + count);
    const Chunk end = words_.chunks() - (first + count);
    memory_.store(words_.lowest(), std::min(memory_.load(words_.lowest()), first));
    memory_.store(words_.highest(), std::min(memory_.load(words_.highest()), end));
    memory_.store(words_.chunks_in_use(), memory_.load(words_.chunks_in_use()) - count);
  }

  // Which chunks held something before they were claimed.
  const WordBits& used_before() const { return used_before_; }

 private:
  std::optional<Chunk> claim(std::optional<Chunk> first, std::uint64_t count) {
    if (!first) return first;
    used_.set(*first, *first + count);
    const std::uint64_t in_use = memory_.load(words_.chunks_in_use()) + count;
    memory_.store(words_.chunks_in_use(), in_use);
    if (in_use > memory_.load(words_.most_in_use())) memory_.store(words_.most_in_use(), in_use);
    return first;
  }

  ProgramMemory& memory_;
  const HeapWords& words_;
  std::uint64_t base_;
  WordBits used_;
  WordBits used_before_;
};

}  // namespace tombolo::dsm
