// SPDX-License-Identifier: Apache-2.0
// Purpose: the blocks of whole pages, which all threads take from the same memory: out of zones up
// to 1 MiB, runs of chunks above (003 section 5.4), and chunks for arenas. There is one lock.
//
// A page's home is its number modulo the threads, so that each block of several pages is striped
// over homes as it is. Nothing is left to do, but for the first pages of blocks, where headers and
// counters lie: those of large blocks and arenas are at multiples of 16 pages, on one home if the
// number of threads divides 16.
//
// Invariants: DAP1 a block is renewed (program_memory.h) before its chunks or pages are marked as
//                  free, and again before they are handed out, unless they were never used. So no
//                  store of an earlier user meets one of the next.
//             DAP2 if there is no room, zones without blocks are given up, and the search is
//                  repeated: an answer of no memory is about all that is free at that moment, but
//                  for chunks that arenas of other threads keep.
// Thread safety: one object for each thread.
#pragma once

#include <cstring>

#include "base/rounding.h"
#include "dsm/allocator/word_lock.h"
#include "dsm/allocator/zones.h"

namespace tombolo::dsm {

enum class Contents : std::uint8_t { any, zero };

class PageBlocks {
 public:
  PageBlocks(ProgramMemory& memory, const HeapWords& words, std::uintptr_t base)
      : memory_(memory),
        words_(words),
        base_(base),
        page_bytes_(std::max<std::size_t>(memory.page_bytes(), 4096)),
        lock_(memory, words.lock()),
        chunks_(memory, words, base / chunk_bytes),
        zones_(memory, words, chunks_, base, page_bytes_) {}

  // Null if there is no room, or a process of the program has died (failure()).
  void* allocate(std::size_t bytes, std::size_t alignment, Contents contents) {
    if (bytes > heap_bytes()) return nullptr;
    Block block;
    const bool zone = bytes <= most_in_zone && alignment <= most_in_zone;
    const bool asked = locked([&] {
      block = zone ? take_any(bytes, alignment) : take_striped(bytes, alignment);
      if (block.bytes == 0 && zones_.release_empty())
        block = zone ? take_any(bytes, alignment) : take_striped(bytes, alignment);
    });
    return asked && block.bytes != 0 && prepare(block, contents) ? at(block.offset) : nullptr;
  }

  // The bytes of the block that begins at `offset` of the heap, by the note of its chunk; 0 if none
  // begins there.
  std::size_t usable(std::uint64_t offset, const ChunkNote& note) const {
    if (note.tier == Tier::striped)
      return offset % chunk_bytes == 0 ? note.number * chunk_bytes : 0;
    if (note.tier != Tier::zone || offset % page_bytes_ != 0) return 0;
    return zones_.pages_of(zones_.page_at(offset)) * page_bytes_;
  }

  void free(std::uint64_t offset, const ChunkNote& note) {
    const std::size_t bytes = usable(offset, note);
    if (!renew(offset, bytes)) return;
    locked([&] {
      if (note.tier == Tier::zone) return zones_.free(zones_.page_at(offset), bytes / page_bytes_);
      memory_.store(words_.note(offset / chunk_bytes), 0);
      chunks_.release(offset / chunk_bytes, note.number);
    });
  }

  // In place, to at least `bytes`, of the same tier. False, and nothing has changed, if the block
  // has to move.
  bool resize(std::uint64_t offset, const ChunkNote& note, std::size_t bytes) {
    if (bytes > heap_bytes() || (note.tier == Tier::zone) != (bytes <= most_in_zone)) return false;
    return note.tier == Tier::zone ? resize_in_zone(offset, bytes)
                                   : resize_striped(offset, note.number, bytes);
  }

  struct NewChunk {
    Chunk chunk;
    bool used_before;
  };
  // For an arena.
  std::optional<NewChunk> claim_chunk() {
    std::optional<Chunk> chunk;
    const bool asked = locked([&] {
      chunk = chunks_.claim_highest();
      if (!chunk && zones_.release_empty()) chunk = chunks_.claim_highest();
    });
    if (!asked || !chunk) return std::nullopt;
    const bool before = chunks_.used_before().test(*chunk);
    if (before && !renew(*chunk * chunk_bytes, chunk_bytes)) return std::nullopt;
    return NewChunk{*chunk, before};
  }
  void release_chunk(Chunk chunk) {
    if (!renew(chunk * chunk_bytes, chunk_bytes)) return;
    locked([&] {
      memory_.store(words_.note(chunk), 0);
      chunks_.release(chunk, 1);
    });
  }

  // Of any bytes of the heap. False: failure() says why, and the bytes may not be handed on.
  bool renew(std::uint64_t offset, std::size_t bytes) {
    return passed(memory_.renew(at(offset), bytes));
  }

  std::size_t heap_bytes() const { return words_.chunks() * chunk_bytes; }
  // Ok unless an operation of the program's memory has failed.
  const Status& failure() const { return failure_; }

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;  // 0: none
    Zones::Before before;   // of a zone's
    Tier tier = Tier::none;
  };

  std::byte* at(std::uint64_t offset) const {
    return memory_.memory().data() +
           (base_ - reinterpret_cast<std::uintptr_t>(memory_.memory().data())) + offset;
  }

  bool passed(Status status) {
    if (status.ok()) return true;
    failure_ = std::move(status);
    return false;
  }

  template <class Body>
  bool locked(Body&& body) {
    if (!passed(lock_.acquire())) return false;
    body();
    lock_.release();
    return true;
  }

  // ---- Under the lock ---------------------------------------------------------------------------

  Block take_any(std::size_t bytes, std::size_t alignment) {
    const Block block = take_from_zone(bytes, alignment);
    return block.bytes != 0 ? block : take_striped(bytes, alignment);
  }

  Block take_from_zone(std::size_t bytes, std::size_t alignment) {
    Block block;
    const std::uint64_t pages = pages_for(bytes);
    const auto page = zones_.allocate(pages, alignment, block.before);
    if (!page) return {};
    block.offset = zones_.offset_of(*page);
    block.bytes = pages * page_bytes_;
    block.tier = Tier::zone;
    return block;
  }

  Block take_striped(std::size_t bytes, std::size_t alignment) {
    const std::uint64_t count = chunks_for(bytes);
    const auto first =
        chunks_.claim_lowest(count, std::max<std::uint64_t>(1, alignment / chunk_bytes));
    if (!first) return {};
    note_striped(*first, count);
    return {.offset = *first * chunk_bytes,
            .bytes = count * chunk_bytes,
            .before = {},
            .tier = Tier::striped};
  }

  void note_striped(Chunk first, std::uint64_t count) {
    memory_.store(words_.note(first),
                  ChunkNote{.tier = Tier::striped, .size_class = 0, .number = count}.pack());
  }

  // ---- Handing out ------------------------------------------------------------------------------

  bool prepare(const Block& block, Contents contents) {
    return block.tier == Tier::zone
               ? prepare_pages(block.offset, block.bytes / page_bytes_, block.before, contents)
               : prepare_chunks(block.offset / chunk_bytes, block.bytes / chunk_bytes, contents);
  }

  bool prepare_pages(std::uint64_t offset, std::uint64_t count, const Zones::Before& before,
                     Contents contents) {
    for (std::uint64_t from = 0; from < count; ++from) {
      std::uint64_t to = from;
      while (to < count && before.test(to)) ++to;
      if (!prepare_run(offset + from * page_bytes_, (to - from) * page_bytes_, contents))
        return false;
      from = to;
    }
    return true;
  }

  bool prepare_chunks(Chunk first, std::uint64_t count, Contents contents) {
    const WordBits& before = chunks_.used_before();
    const Chunk end = first + count;
    for (Chunk from = before.find(true, first, end); from < end;) {
      const Chunk to = before.find(false, from, end);
      if (!prepare_run(from * chunk_bytes, (to - from) * chunk_bytes, contents)) return false;
      from = before.find(true, to, end);
    }
    return true;
  }

  // Memory that was used before.
  bool prepare_run(std::uint64_t offset, std::size_t bytes, Contents contents) {
    if (bytes == 0) return true;
    if (!renew(offset, bytes)) return false;
    if (contents == Contents::zero) std::memset(at(offset), 0, bytes);
    return true;
  }

  // ---- In place ---------------------------------------------------------------------------------

  bool resize_in_zone(std::uint64_t offset, std::size_t bytes) {
    const Zones::PageNumber page = zones_.page_at(offset);
    const std::uint64_t from = zones_.pages_of(page);
    const std::uint64_t to = pages_for(bytes);
    if (to == from) return true;
    if (to < from)
      return renew(offset + to * page_bytes_, (from - to) * page_bytes_) &&
             locked([&] { zones_.shrink(page, from, to); });
    bool grown = false;
    Zones::Before before;
    return locked([&] { grown = zones_.grow(page, from, to, before); }) && grown &&
           prepare_pages(offset + from * page_bytes_, to - from, before, Contents::any);
  }

  bool resize_striped(std::uint64_t offset, std::uint64_t from, std::size_t bytes) {
    const Chunk first = offset / chunk_bytes;
    const std::uint64_t to = chunks_for(bytes);
    if (to == from) return true;
    if (to < from)
      return renew(offset + to * chunk_bytes, (from - to) * chunk_bytes) && locked([&] {
               note_striped(first, to);
               chunks_.release(first + to, from - to);
             });
    bool grown = false;
    return locked([&] {
             grown = chunks_.claim_at(first + from, to - from);
             if (grown) note_striped(first, to);
           }) &&
           grown && prepare_chunks(first + from, to - from, Contents::any);
  }

  std::uint64_t pages_for(std::size_t bytes) const {
    return round_up(std::max<std::size_t>(bytes, 1), page_bytes_) / page_bytes_;
  }
  static std::uint64_t chunks_for(std::size_t bytes) {
    return round_up(std::max<std::size_t>(bytes, 1), chunk_bytes) / chunk_bytes;
  }

  ProgramMemory& memory_;
  const HeapWords& words_;
  std::uintptr_t base_;
  std::size_t page_bytes_;
  WordLock lock_;
  ChunkMap chunks_;
  Zones zones_;
  Status failure_;
};

}  // namespace tombolo::dsm
