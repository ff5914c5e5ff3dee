// SPDX-License-Identifier: Apache-2.0
// Purpose: malloc and its relatives in the global memory of a threaded program, in the three tiers
// of 003 section 5.4: arenas of each thread to 4 KiB, zones to 1 MiB, striped blocks above.
//
//   static MemoryHeap heap;
//   TOMBOLO_TRY(heap.open(memory, place, first_word));    // each process, at its start
//   void* p = heap.malloc(bytes);                          // null and errno, as in C
//   heap.leave();                                          // its number goes to another process
//
// A block is freed by any thread. Small ones go back to the arena that they came from
// (returned_blocks.h), so that blocks of different threads never share a page; they may be had
// again at their owner's next allocation that finds its arena full. Larger ones may be had at once,
// by all threads.
//
// Invariants: DAH1 free() counts as a store by the thread that frees, and malloc() as one by the
//                  thread that allocates: the program orders earlier accesses before free() by the
//                  rules of its model. From there to the next user the heap orders them
//                  (ProgramMemory::renew).
//             DAH2 no call uses the process's malloc, but to say why the program's memory failed.
//             DAH3 freeing twice, or an address at which no block begins, stops the program, unless
//                  another block has begun there. A second free of a small block of another thread
//                  may be noticed later, when the blocks that this thread frees go back together.
// Errors: null and ENOMEM if there is no room, and nothing has changed; likewise if the program's
//         memory has failed: failure() says why.
// Thread safety: one object for each process of the program, for its one thread; not in handlers of
// signals.
#pragma once

#include <cerrno>

#include "dsm/allocator/arenas.h"
#include "dsm/allocator/return_batch.h"

namespace tombolo::dsm {

struct HeapFigures {
  std::uint64_t chunks = 0;       // of 64 KiB
  std::uint64_t in_use = 0;       // by all tiers; with the empty zones
  std::uint64_t most_in_use = 0;  // at any time
};

class MemoryHeap {
 public:
  MemoryHeap() = default;
  MemoryHeap(const MemoryHeap&) = delete;
  MemoryHeap& operator=(const MemoryHeap&) = delete;

  // The words that a heap of that many bytes has, from its first one.
  static std::uint64_t words_for(std::size_t bytes, Thread threads) {
    return HeapWords(0, bytes / chunk_bytes, threads).end();
  }

  // `place`: part of the program's memory, the same in all processes, as is `first_word`. Its words
  // and its bytes are zero when the first process opens it. Before
  // that, owns() alone may be called.
  Status open(ProgramMemory& memory, std::span<std::byte> place, WordIndex first_word);

  void* malloc(std::size_t bytes) { return allocate(bytes, least_alignment, Contents::any); }
  void* calloc(std::size_t count, std::size_t bytes_of_one);
  // As in glibc: a size of 0 frees the block and gives null.
  void* realloc(void* block, std::size_t bytes);
  // Alignments have to be powers of two: else null and EINVAL.
  void* aligned_alloc(std::size_t alignment, std::size_t bytes);
  // The same, of zeros.
  void* aligned_calloc(std::size_t alignment, std::size_t bytes);
  // As in glibc: an alignment that is no power of two is rounded up to one.
  void* memalign(std::size_t alignment, std::size_t bytes);
  // 0, ENOMEM or EINVAL; errno and, in case of an error, `block` stay.
  int posix_memalign(void** block, std::size_t alignment, std::size_t bytes);
  void* valloc(std::size_t bytes) { return memalign(memory_->page_bytes(), bytes); }
  void* pvalloc(std::size_t bytes);
  std::size_t usable_size(const void* block) const;
  // errno stays.
  void free(void* block);

  bool owns(const void* address) const { return offset_of(address) < bytes_; }

  // Gives back all that this thread keeps for later: blocks of others that it has freed, and chunks
  // without blocks. Worth its while before a long wait: until then others cannot have them.
  void settle();
  // Hands this thread's arenas to the next process of its number. Blocks that this one allocates or
  // frees afterwards are for a further leave().
  void leave();

  HeapFigures figures() const;
  // Why the program's memory has failed. All that this heap is asked for from then on may fail.
  const Status& failure() const { return parts_->pages.failure(); }

 private:
  struct Parts {
    Parts(ProgramMemory& memory, const HeapWords& words, std::uintptr_t base)
        : pages(memory, words, base), arenas(memory, words, pages), batch(memory, words, pages) {}
    PageBlocks pages;
    Arenas arenas;
    ReturnBatch batch;
  };

  static std::span<std::byte> whole_chunks(std::span<std::byte> place);
  Status open_parts(ProgramMemory& memory, std::span<std::byte> chunks);

  std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
  }
  ChunkNote note_of(std::uint64_t offset) const {
    return ChunkNote::unpack(memory_->load(words_.note(offset / chunk_bytes)));
  }
  // Of an arena's block, that begins at `offset`.
  static std::uint64_t number_of(std::uint64_t offset, SizeClass c);

  void* aligned(std::size_t alignment, std::size_t bytes, Contents contents);
  void* allocate(std::size_t bytes, std::size_t alignment, Contents contents);
  void* try_allocate(std::size_t bytes, std::size_t alignment, Contents contents);
  void* allocate_larger(SizeClass c, std::size_t bytes, std::size_t alignment, Contents contents);
  void* take(const Arenas::Block& block, std::size_t bytes, Contents contents);
  void free_other(std::uint64_t offset);
  bool stays(void* block, std::size_t usable, std::size_t bytes);

  ProgramMemory* memory_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;  // 0 before open(): no address is of the heap
  HeapWords words_;
  std::optional<Parts> parts_;
};

// ---- Opening ------------------------------------------------------------------------------------

inline std::span<std::byte> MemoryHeap::whole_chunks(std::span<std::byte> place) {
  const auto start = reinterpret_cast<std::uintptr_t>(place.data());
  const std::size_t skipped = round_up(start, chunk_bytes) - start;
  if (place.size() < skipped) return {};
  return place.subspan(skipped, (place.size() - skipped) / chunk_bytes * chunk_bytes);
}

inline Status MemoryHeap::open(ProgramMemory& memory, std::span<std::byte> place,
                               WordIndex first_word) {
  const std::span<std::byte> all = memory.memory();
  TOMBOLO_CHECK(
      all.data() <= place.data() && place.data() + place.size() <= all.data() + all.size(),
      "heap: its place is not in the program's memory");
  const std::span<std::byte> chunks = whole_chunks(place);
  if (chunks.empty())
    return Status::no_memory(
        fmt::format("heap: {} bytes of global memory are left for it; it needs {} or more",
                    place.size(), 2 * chunk_bytes));
  const std::size_t page_bytes = memory.page_bytes();
  if (!std::has_single_bit(page_bytes) || page_bytes > chunk_bytes)
    return Status::unsupported(fmt::format(
        "heap: pages of {} bytes; choose a power of two of at most {}", page_bytes, chunk_bytes));
  words_ = HeapWords(first_word, chunks.size() / chunk_bytes, memory.threads());
  TOMBOLO_CHECK(words_.end() <= memory.words(), "heap: it needs {} words, and there are {}",
                words_.end(), memory.words());
  return open_parts(memory, chunks);
}

inline Status MemoryHeap::open_parts(ProgramMemory& memory, std::span<std::byte> chunks) {
  parts_.emplace(memory, words_, reinterpret_cast<std::uintptr_t>(chunks.data()));
  if (!parts_->arenas)
    return Status::no_memory(fmt::format(
        "heap: no address space for the records of {} bytes; raise `ulimit -v`", chunks.size()));
  memory_ = &memory;
  base_ = chunks.data();
  bytes_ = chunks.size();
  return {};
}

// ---- Allocation ---------------------------------------------------------------------------------

inline void* MemoryHeap::allocate(std::size_t bytes, std::size_t alignment, Contents contents) {
  if (void* block = try_allocate(bytes, alignment, contents)) [[likely]]
    return block;
  const int before = errno;
  settle();
  void* const block = try_allocate(bytes, alignment, contents);
  errno = block != nullptr ? before : ENOMEM;
  return block;
}

inline void* MemoryHeap::try_allocate(std::size_t bytes, std::size_t alignment, Contents contents) {
  const auto c = size_class_of(bytes, alignment);
  if (!c) return parts_->pages.allocate(bytes, alignment, contents);
  if (const auto block = parts_->arenas.allocate(*c)) [[likely]]
    return take(*block, bytes, contents);
  return allocate_larger(*c, bytes, alignment, contents);
}

// There is no chunk left: a larger block of an arena, or of a zone, serves as well.
inline void* MemoryHeap::allocate_larger(SizeClass c, std::size_t bytes, std::size_t alignment,
                                         Contents contents) {
  for (++c; c < SizeClasses::count; ++c) {
    if (block_bytes(c) % alignment != 0) continue;
    if (const auto block = parts_->arenas.allocate_from_room(c))
      return take(*block, bytes, contents);
  }
  return parts_->pages.allocate(bytes, alignment, contents);
}

inline void* MemoryHeap::take(const Arenas::Block& block, std::size_t bytes, Contents contents) {
  std::byte* const at = base_ + block.offset;
  if (contents == Contents::zero && block.used_before) {
    // In a span, as instrumented code would: small blocks travel byte by byte.
    memory_->record(at, bytes);
    std::memset(at, 0, bytes);
  }
  return at;
}

inline void* MemoryHeap::calloc(std::size_t count, std::size_t bytes_of_one) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, bytes_of_one, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(bytes, least_alignment, Contents::zero);
}

inline void* MemoryHeap::aligned(std::size_t alignment, std::size_t bytes, Contents contents) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate(bytes, std::max(alignment, least_alignment), contents);
}

inline void* MemoryHeap::aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return aligned(alignment, bytes, Contents::any);
}

inline void* MemoryHeap::aligned_calloc(std::size_t alignment, std::size_t bytes) {
  return aligned(alignment, bytes, Contents::zero);
}

inline void* MemoryHeap::memalign(std::size_t alignment, std::size_t bytes) {
  if (alignment > bytes_) alignment = std::bit_floor(~std::size_t{0});
  return aligned_alloc(std::bit_ceil(alignment), bytes);
}

inline int MemoryHeap::posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int before = errno;
  void* const made = aligned_alloc(alignment, bytes);
  errno = before;
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

inline void* MemoryHeap::pvalloc(std::size_t bytes) {
  // More than the heap has, rounded up or not: it must not wrap.
  return valloc(bytes > bytes_ ? bytes : round_up(bytes, memory_->page_bytes()));
}

// ---- The end of blocks --------------------------------------------------------------------------

inline std::uint64_t MemoryHeap::number_of(std::uint64_t offset, SizeClass c) {
  const std::uint64_t within = offset % chunk_bytes;
  const std::uint64_t number = block_at(c, within);
  TOMBOLO_CHECK(number * block_bytes(c) == within && number < blocks_per_chunk(c),
                "free: no block begins {} bytes into one of {} bytes",
                within - number * block_bytes(c), block_bytes(c));
  return number;
}

inline std::size_t MemoryHeap::usable_size(const void* block) const {
  if (block == nullptr) return 0;
  const std::uint64_t offset = offset_of(block);
  TOMBOLO_CHECK(offset < bytes_, "malloc: {} is not an address of the global heap",
                fmt::ptr(block));
  if (const auto c = parts_->arenas.own(offset / chunk_bytes)) {
    number_of(offset, *c);
    return block_bytes(*c);
  }
  const ChunkNote note = note_of(offset);
  if (note.tier == Tier::arena) {
    number_of(offset, note.size_class);
    return block_bytes(note.size_class);
  }
  const std::size_t bytes = parts_->pages.usable(offset, note);
  TOMBOLO_CHECK(bytes != 0, "free: no block of the global heap begins at {}; freed twice?",
                fmt::ptr(block));
  return bytes;
}

inline void MemoryHeap::free(void* block) {
  if (block == nullptr) return;
  const std::uint64_t offset = offset_of(block);
  TOMBOLO_CHECK(offset < bytes_, "free: {} is not an address of the global heap", fmt::ptr(block));
  const auto c = parts_->arenas.own(offset / chunk_bytes);
  const int before = errno;
  if (c) [[likely]]
    parts_->arenas.free(offset / chunk_bytes, number_of(offset, *c));
  else
    free_other(offset);
  errno = before;
}

// Not of an arena of this process, as far as it knows.
inline void MemoryHeap::free_other(std::uint64_t offset) {
  const ChunkNote note = note_of(offset);
  if (note.tier == Tier::arena)
    return parts_->batch.add(offset / chunk_bytes, number_of(offset, note.size_class));
  // That a block begins there.
  usable_size(base_ + offset);
  parts_->pages.free(offset, note);
}

inline void* MemoryHeap::realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  const std::size_t usable = usable_size(block);
  if (stays(block, usable, bytes)) return block;
  const int before = errno;
  void* const moved = malloc(bytes);
  if (moved == nullptr) {
    // A block that would only become smaller is large enough.
    if (bytes > usable) return nullptr;
    errno = before;
    return block;
  }
  const std::size_t copied = std::min(usable, bytes);
  if (copied <= most_in_arena) memory_->record(moved, copied);
  // Not recorded above: where much changes, the pages travel as a whole.
  std::memcpy(moved, block, copied);
  free(block);
  return moved;
}

// Whether a block serves for that many bytes where it is, perhaps after a change of its end.
inline bool MemoryHeap::stays(void* block, std::size_t usable, std::size_t bytes) {
  if (usable <= most_in_arena) {
    if (bytes <= usable && bytes > usable / 2) return true;
  }
  const std::uint64_t offset = offset_of(block);
  const ChunkNote note = note_of(offset);
  if (note.tier == Tier::arena) return size_class_of(bytes, 1) == note.size_class;
  return bytes > most_in_arena && parts_->pages.resize(offset, note, bytes);
}

// ---- Kept for later ----------------------------------------------------------------------------

inline void MemoryHeap::settle() {
  parts_->batch.send();
  parts_->arenas.take_returned();
  parts_->arenas.release_spares();
}

inline void MemoryHeap::leave() {
  settle();
  parts_->arenas.leave();
}

inline HeapFigures MemoryHeap::figures() const {
  return {.chunks = words_.chunks(),
          .in_use = memory_->load(words_.chunks_in_use()),
          .most_in_use = memory_->load(words_.most_in_use())};
}

}  // namespace tombolo::dsm
