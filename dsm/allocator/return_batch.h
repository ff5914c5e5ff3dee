// SPDX-License-Identifier: Apache-2.0
// Purpose: blocks that this thread has freed and that belong to the arenas of others. They go back
// in batches: their pages are renewed once for all blocks in them, and the blocks of one word by
// one atomic.
//
// Invariants: DAB1 a block's page is renewed before its owner can find the block (DAP1).
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <array>

#include "dsm/allocator/page_runs.h"
#include "dsm/allocator/returned_blocks.h"
#include "dsm/allocator/size_classes.h"

namespace tombolo::dsm {

class ReturnBatch {
 public:
  // A thread that frees nothing more keeps fewer than these, unless it calls send().
  static constexpr std::size_t most = 64;

  ReturnBatch(ProgramMemory& memory, const HeapWords& words, PageBlocks& pages)
      : memory_(memory), words_(words), pages_(pages), returned_(memory, words) {}

  void add(Chunk chunk, std::uint64_t block) {
    blocks_[count_++] = chunk << block_bits | block;
    if (count_ == most) send();
  }

  void send() {
    const auto end = blocks_.begin() + static_cast<std::ptrdiff_t>(std::exchange(count_, 0));
    std::sort(blocks_.begin(), end);
    if (!renew(end)) return;
    for (auto first = blocks_.begin(); first != end;) {
      const auto last = std::find_if(first, end, [&](std::uint64_t b) {
        return b / blocks_per_word != *first / blocks_per_word;
      });
      give({first, last});
      first = last;
    }
  }

 private:
  static constexpr unsigned block_bits = 12;
  static constexpr std::uint64_t blocks_per_word = 64;
  using Blocks = std::array<std::uint64_t, most>;

  static Chunk chunk_of(std::uint64_t entry) { return entry >> block_bits; }
  static std::uint64_t block_of(std::uint64_t entry) { return entry & ((1u << block_bits) - 1); }
  // It has live blocks: the note does not change (DAW2).
  ChunkNote note_of(std::uint64_t entry) const {
    return ChunkNote::unpack(memory_.load(words_.note(chunk_of(entry))));
  }

  bool renew(Blocks::const_iterator end) {
    PageRuns runs(pages_, memory_.page_bytes());
    for (auto entry = blocks_.cbegin(); entry != end; ++entry) {
      const std::size_t bytes = block_bytes(note_of(*entry).size_class);
      runs.add(chunk_of(*entry) * chunk_bytes + block_of(*entry) * bytes, bytes);
    }
    return runs.finish();
  }

  void give(std::span<const std::uint64_t> entries) {
    const Chunk chunk = chunk_of(entries[0]);
    std::uint64_t bits = 0;
    bool once = true;
    for (const std::uint64_t entry : entries) {
      const std::uint64_t bit = std::uint64_t{1} << block_of(entry) % blocks_per_word;
      once = once && (bits & bit) == 0;
      bits |= bit;
    }
    const ChunkNote note = note_of(entries[0]);
    const std::uint64_t word = block_of(entries[0]) / blocks_per_word;
    once = once && returned_.give(note.owner(), chunk, word, bits);
    TOMBOLO_CHECK(once, "free: a block of {} bytes of thread {} has been freed twice",
                  block_bytes(note.size_class), note.owner());
  }

  ProgramMemory& memory_;
  const HeapWords& words_;
  PageBlocks& pages_;
  ReturnedBlocks returned_;
  Blocks blocks_{};
  std::size_t count_ = 0;
};

}  // namespace tombolo::dsm
