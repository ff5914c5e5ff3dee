// SPDX-License-Identifier: Apache-2.0
// Purpose: the arenas of one thread (003 section 5.4): chunks of its own, each with blocks of one
// size. Which of them are free is in memory of this process alone: to allocate and to free one's
// own block needs neither a word nor a page.
//
//   allocate   a free block of the first chunk of the class; else blocks that others have
//              returned, else a new chunk
//   free       the bit of the block. A chunk without blocks goes back, unless it is the last with
//              room of its class
//   leave      all that is free becomes bits in words, as if another thread had freed it: the next
//              process of this thread's number takes it as it takes returned blocks
//
// Invariants: DAA1 a chunk belongs to the thread that its note names. This process has a record of
//                  it, with its size class, once it has claimed the chunk or found a returned block
//                  of it (an earlier process of the number had claimed it).
//             DAA2 a record is in one of two lists of its class: chunks with room, full ones.
//             DAA3 the lowest free block of a chunk is the next one: those from `touched` on were
//                  never used, if the chunk was not.
// Memory: 576 bytes of address space for each chunk of the heap; touched for own chunks.
// Thread safety: one thread.
#pragma once

#include "dsm/allocator/page_runs.h"
#include "dsm/allocator/returned_blocks.h"
#include "dsm/allocator/size_classes.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

class Arenas {
 public:
  struct Block {
    std::uint64_t offset;  // in the heap
    bool used_before;
  };

  Arenas(ProgramMemory& memory, const HeapWords& words, PageBlocks& pages)
      : memory_(memory),
        words_(words),
        pages_(pages),
        returned_(memory, words),
        // Mappings alone: malloc may be this heap.
        records_(std::max<std::size_t>(words.chunks() * sizeof(Record), host_mapping_bytes)) {}
  // False if there is no address space for the records.
  explicit operator bool() const { return static_cast<bool>(records_); }

  // Nothing if there is no memory.
  std::optional<Block> allocate(SizeClass c) {
    if (lists_[c].room.first != 0) [[likely]]
      return take_block(c);
    take_returned();
    if (lists_[c].room.first == 0 && !add_chunk(c)) return std::nullopt;
    return take_block(c);
  }
  // Without a new chunk.
  std::optional<Block> allocate_from_room(SizeClass c) {
    if (lists_[c].room.first == 0) return std::nullopt;
    return take_block(c);
  }

  // The size class, if this process has a record of the chunk.
  std::optional<SizeClass> own(Chunk chunk) const {
    const std::uint8_t class_and_1 = record(chunk).class_and_1;
    if (class_and_1 == 0) return std::nullopt;
    return static_cast<SizeClass>(class_and_1 - 1);
  }
  // Of an own chunk.
  void free(Chunk chunk, std::uint64_t block) {
    add_free(chunk, block / 64, std::uint64_t{1} << block % 64);
  }

  // Blocks that other threads have freed.
  void take_returned() {
    if (!returned_.any(memory_.self())) return;
    PageRuns runs(pages_, memory_.page_bytes());
    returned_.take(memory_.self(), [&](Chunk chunk, std::uint64_t word, std::uint64_t blocks) {
      if (!own(chunk)) adopt(chunk);
      renew(runs, chunk, word, blocks);
      add_free(chunk, word, blocks);
    });
    // Before one of these blocks is handed out (DAP1).
    runs.finish();
  }

  // Gives all chunks without blocks back.
  void release_spares() {
    for (Lists& lists : lists_)
      for (Link at = lists.room.first; at != 0;) {
        const Chunk chunk = at - 1;
        at = record(chunk).next;
        if (record(chunk).in_use == 0) release(chunk);
      }
  }

  void leave() {
    take_returned();
    release_spares();
    for (Lists& lists : lists_) {
      while (lists.room.first != 0) hand_over(lists.room, lists.room.first - 1);
      while (lists.full.first != 0) forget(lists.full, lists.full.first - 1);
    }
  }

 private:
  static constexpr std::size_t host_mapping_bytes = std::size_t{1} << 20;
  // A chunk and 1; 0: none.
  using Link = std::uint32_t;
  struct alignas(64) Record {
    std::uint8_t class_and_1;  // 0: not a chunk of this process
    std::uint16_t in_use;      // blocks
    std::uint16_t touched;     // the first block that was never used
    Link next;
    Link previous;
    std::uint64_t words;  // of `free`, those that are not 0
    std::uint64_t free[64];
  };
  struct List {
    Link first = 0;
    Link last = 0;
  };
  struct Lists {
    List room;
    List full;
  };

  Record& record(Chunk chunk) const { return records_.as<Record>()[chunk]; }

  // ---- Lists ------------------------------------------------------------------------------------

  // At the end: chunks that are emptying are used last.
  void append(List& list, Chunk chunk) {
    Record& r = record(chunk);
    const auto link = static_cast<Link>(chunk + 1);
    r.next = 0;
    r.previous = std::exchange(list.last, link);
    (r.previous != 0 ? record(r.previous - 1).next : list.first) = link;
  }
  void unlink(List& list, Chunk chunk) {
    const Record& r = record(chunk);
    (r.previous != 0 ? record(r.previous - 1).next : list.first) = r.next;
    (r.next != 0 ? record(r.next - 1).previous : list.last) = r.previous;
  }

  // ---- Blocks -----------------------------------------------------------------------------------

  Block take_block(SizeClass c) {
    const Chunk chunk = lists_[c].room.first - 1;
    Record& r = record(chunk);
    const auto word = static_cast<std::uint64_t>(std::countr_zero(r.words));
    const std::uint64_t block =
        word * 64 + static_cast<std::uint64_t>(std::countr_zero(r.free[word]));
    r.free[word] &= r.free[word] - 1;
    if (r.free[word] == 0) r.words &= r.words - 1;
    ++r.in_use;
    if (r.words == 0) {
      unlink(lists_[c].room, chunk);
      append(lists_[c].full, chunk);
    }
    const bool used_before = block < r.touched;
    if (!used_before) r.touched = static_cast<std::uint16_t>(block + 1);
    return {chunk * chunk_bytes + block * block_bytes(c), used_before};
  }

  void add_free(Chunk chunk, std::uint64_t word, std::uint64_t blocks) {
    Record& r = record(chunk);
    const auto c = static_cast<SizeClass>(r.class_and_1 - 1);
    TOMBOLO_CHECK((r.free[word] & blocks) == 0, "free: a block of {} bytes has been freed twice",
                  block_bytes(c));
    if (r.words == 0) {
      unlink(lists_[c].full, chunk);
      append(lists_[c].room, chunk);
    }
    r.free[word] |= blocks;
    r.words |= std::uint64_t{1} << word;
    r.in_use = static_cast<std::uint16_t>(r.in_use - std::popcount(blocks));
    if (r.in_use == 0 && lists_[c].room.first != lists_[c].room.last) release(chunk);
  }

  void renew(PageRuns& runs, Chunk chunk, std::uint64_t word, std::uint64_t blocks) {
    const std::size_t bytes = block_bytes(*own(chunk));
    for (; blocks != 0; blocks &= blocks - 1)
      runs.add(chunk * chunk_bytes +
                   (word * 64 + static_cast<std::uint64_t>(std::countr_zero(blocks))) * bytes,
               bytes);
  }

  // ---- Chunks -----------------------------------------------------------------------------------

  bool add_chunk(SizeClass c) {
    const auto claimed = pages_.claim_chunk();
    if (!claimed) return false;
    const Chunk chunk = claimed->chunk;
    Record& r = record(chunk);
    const std::uint64_t blocks = blocks_per_chunk(c);
    r = {};
    r.class_and_1 = static_cast<std::uint8_t>(c + 1);
    r.touched = static_cast<std::uint16_t>(claimed->used_before ? blocks : 0);
    for (std::uint64_t word = 0; word * 64 < blocks; ++word) {
      const std::uint64_t here = std::min<std::uint64_t>(64, blocks - word * 64);
      r.free[word] = ~std::uint64_t{0} >> (64 - here);
      r.words |= std::uint64_t{1} << word;
    }
    append(lists_[c].room, chunk);
    // Before a block of it is known to the program.
    memory_.store(words_.note(chunk), note(c).pack());
    return true;
  }
  ChunkNote note(SizeClass c) const {
    return {.tier = Tier::arena, .size_class = c, .number = memory_.self()};
  }

  // A chunk of an earlier process of this number. Its free blocks are on their way.
  void adopt(Chunk chunk) {
    const SizeClass c = ChunkNote::unpack(memory_.load(words_.note(chunk))).size_class;
    Record& r = record(chunk);
    r = {};
    r.class_and_1 = static_cast<std::uint8_t>(c + 1);
    r.in_use = r.touched = static_cast<std::uint16_t>(blocks_per_chunk(c));
    append(lists_[c].full, chunk);
  }

  // Without blocks.
  void release(Chunk chunk) {
    forget(lists_[*own(chunk)].room, chunk);
    pages_.release_chunk(chunk);
  }
  void forget(List& list, Chunk chunk) {
    unlink(list, chunk);
    record(chunk).class_and_1 = 0;
  }
  void hand_over(List& list, Chunk chunk) {
    const Record& r = record(chunk);
    forget(list, chunk);
    // The next process has another cache (DAP1).
    if (!pages_.renew(chunk * chunk_bytes, chunk_bytes)) return;
    for (std::uint64_t words = r.words; words != 0; words &= words - 1) {
      const auto word = static_cast<std::uint64_t>(std::countr_zero(words));
      TOMBOLO_CHECK(returned_.give(memory_.self(), chunk, word, r.free[word]),
                    "free: a block of an arena of thread {} has been freed twice", memory_.self());
    }
  }

  ProgramMemory& memory_;
  const HeapWords& words_;
  PageBlocks& pages_;
  ReturnedBlocks returned_;
  host::ZeroMemory records_;
  std::array<Lists, SizeClasses::count> lists_{};
};

}  // namespace tombolo::dsm
