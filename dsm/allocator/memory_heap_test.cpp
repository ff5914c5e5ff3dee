// SPDX-License-Identifier: Apache-2.0
// Purpose: the heap as one thread sees it: the C functions with sizes and alignments of all tiers,
// zeroed memory, growth in place, and the end of the memory.
// Thread safety: -
#include "dsm/allocator/memory_heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <set>

#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool all_equal(const void* block, std::size_t bytes, int value) {
  const auto* at = static_cast<const unsigned char*>(block);
  return std::all_of(at, at + bytes, [value](unsigned char c) { return c == value; });
}

std::uintptr_t address(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }

class MemoryHeapTest : public ::testing::Test {
 protected:
  MemoryHeapTest() {
    const Status opened = heap_.open(memory_, memory_.memory(), 0);
    EXPECT_TRUE(opened.ok()) << opened.message();
  }

  PlainProgram program_{{.threads = 2, .bytes = 6 * group_bytes}};
  PlainMemory memory_{program_, 1};
  MemoryHeap heap_;
};

TEST_F(MemoryHeapTest, BlocksHoldTheirSizeAndAreAligned) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{4095},
        std::size_t{4096}, std::size_t{4097}, std::size_t{100000}, mib, mib + 1, 5 * mib}) {
    void* const block = heap_.malloc(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_GE(heap_.usable_size(block), bytes);
    EXPECT_EQ(address(block) % 16, 0u);
    if (bytes >= 4096) {
      EXPECT_EQ(address(block) % 4096, 0u) << bytes;
    }
    EXPECT_TRUE(heap_.owns(block));
    std::memset(block, 1, heap_.usable_size(block));
    heap_.free(block);
  }
  EXPECT_EQ(heap_.usable_size(nullptr), 0u);
  heap_.free(nullptr);
}

TEST_F(MemoryHeapTest, SmallBlocksNeedNoWords) {
  void* const first = heap_.malloc(64);
  const std::uint64_t before = memory_.word_operations();
  std::set<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.insert(heap_.malloc(64));
  EXPECT_EQ(blocks.size(), 1000u);
  EXPECT_FALSE(blocks.contains(first));
  for (void* block : blocks) heap_.free(block);
  EXPECT_EQ(memory_.word_operations(), before);
}

TEST_F(MemoryHeapTest, AlignmentsAreKept) {
  for (std::size_t alignment = 1; alignment <= mib; alignment *= 2)
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{200}, std::size_t{5000}, 2 * mib}) {
      void* const block = heap_.aligned_alloc(alignment, bytes);
      ASSERT_NE(block, nullptr) << bytes << " at " << alignment;
      EXPECT_EQ(address(block) % alignment, 0u);
      EXPECT_GE(heap_.usable_size(block), bytes);
      if (bytes > mib || alignment % 3 == 1) heap_.free(block);
    }
  EXPECT_EQ(address(heap_.memalign(48, 10)) % 64, 0u) << "rounded up";
  EXPECT_EQ(address(heap_.valloc(10)) % 4096, 0u);
  EXPECT_EQ(heap_.usable_size(heap_.pvalloc(5000)), 8192u);
  void* block = nullptr;
  EXPECT_EQ(heap_.posix_memalign(&block, 256, 10), 0);
  EXPECT_EQ(address(block) % 256, 0u);
}

TEST_F(MemoryHeapTest, BadAlignmentsAreRefused) {
  errno = 0;
  EXPECT_EQ(heap_.aligned_alloc(48, 96), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(heap_.aligned_alloc(0, 96), nullptr);
  errno = 7;
  void* block = &block;
  for (const std::size_t alignment : {0, 1, 4, 24, 63})
    EXPECT_EQ(heap_.posix_memalign(&block, alignment, 8), EINVAL) << alignment;
  EXPECT_EQ(heap_.posix_memalign(&block, 8, ~std::size_t{0}), ENOMEM);
  EXPECT_EQ(block, &block) << "it stays";
  EXPECT_EQ(errno, 7) << "it stays";
}

TEST_F(MemoryHeapTest, SizesPastAllMemoryAreRefused) {
  constexpr std::size_t most = ~std::size_t{0};
  for (const std::size_t bytes : {most, most - 1, most - 4096, most / 2, most / 2 + 1,
                                  6 * group_bytes + 1, std::size_t{1} << 48}) {
    errno = 0;
    EXPECT_EQ(heap_.malloc(bytes), nullptr) << bytes;
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(heap_.memalign(mib, bytes), nullptr);
    EXPECT_EQ(heap_.pvalloc(bytes), nullptr);
  }
  errno = 0;
  EXPECT_EQ(heap_.calloc(most / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(heap_.calloc(3, most / 2), nullptr);
  EXPECT_EQ(heap_.memalign(most / 2 + 1, 1), nullptr);
  EXPECT_EQ(heap_.memalign(most, 1), nullptr);
  void* const block = heap_.malloc(100);
  EXPECT_EQ(heap_.realloc(block, most), nullptr);
  EXPECT_EQ(heap_.usable_size(block), 112u) << "it stays";
  EXPECT_NE(heap_.calloc(0, 5), nullptr);
}

TEST_F(MemoryHeapTest, CallocGivesZeros) {
  for (int round = 0; round < 3; ++round)
    for (const std::size_t bytes :
         {std::size_t{24}, std::size_t{3000}, std::size_t{40000}, 3 * mib}) {
      std::vector<void*> blocks;
      for (int i = 0; i < 3; ++i) {
        void* const block = heap_.calloc(bytes / 8, 8);
        ASSERT_NE(block, nullptr);
        ASSERT_TRUE(all_equal(block, bytes, 0)) << bytes << ", round " << round;
        std::memset(block, 0xff, heap_.usable_size(block));
        blocks.push_back(block);
      }
      for (void* block : blocks) heap_.free(block);
    }
}

TEST_F(MemoryHeapTest, CallocGivesZerosWhereAnotherTierWas) {
  void* const everything = heap_.malloc(6 * group_bytes);
  ASSERT_NE(everything, nullptr);
  std::memset(everything, 0xff, 6 * group_bytes);
  heap_.free(everything);
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{40000}, 3 * mib}) {
    void* const block = heap_.calloc(bytes, 1);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(all_equal(block, bytes, 0)) << bytes;
  }
}

// Whether the pages of a block are in memory: of memory that was never used none may be touched.
TEST_F(MemoryHeapTest, CallocDoesNotTouchWhatWasNeverUsed) {
  const auto* memory = memory_.memory().data();
  void* const block = heap_.calloc(3 * mib, 1);
  void* const medium = heap_.calloc(100000, 1);
  std::vector<unsigned char> resident(memory_.memory().size() / 4096);
  ASSERT_EQ(mincore(memory_.memory().data(), memory_.memory().size(), resident.data()), 0);
  for (const auto& [at, bytes] :
       {std::pair(block, 3 * mib), std::pair(medium, std::size_t{100000})})
    for (std::size_t i = 0; i < bytes; i += 4096)
      ASSERT_EQ(resident[(static_cast<std::byte*>(at) - memory + i) / 4096] & 1, 0) << i;
}

TEST_F(MemoryHeapTest, ReallocKeepsContentsAcrossTiers) {
  void* block = heap_.realloc(nullptr, 10);
  std::memset(block, 5, 10);
  std::size_t filled = 10;
  for (const std::size_t bytes :
       {std::size_t{12}, std::size_t{100}, std::size_t{5000}, std::size_t{70000}, mib, 2 * mib,
        5 * mib, 2 * mib, std::size_t{200000}, std::size_t{9000}, std::size_t{3000},
        std::size_t{100}, std::size_t{3}}) {
    block = heap_.realloc(block, bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(heap_.usable_size(block), bytes);
    ASSERT_TRUE(all_equal(block, std::min(filled, bytes), 5)) << bytes;
    std::memset(block, 5, bytes);
    filled = bytes;
  }
  EXPECT_EQ(heap_.usable_size(block), 16u);
  EXPECT_EQ(heap_.realloc(block, 0), nullptr);
}

TEST_F(MemoryHeapTest, ReallocStaysWhereItCan) {
  void* const small = heap_.malloc(100);
  EXPECT_EQ(heap_.realloc(small, 112), small);
  EXPECT_EQ(heap_.realloc(small, 57), small);
  EXPECT_NE(heap_.realloc(small, 56), small) << "half of it would be lost";
  void* const medium = heap_.malloc(10000);
  EXPECT_EQ(heap_.realloc(medium, 500000), medium);
  EXPECT_EQ(heap_.realloc(medium, 5000), medium);
  void* const large = heap_.malloc(2 * mib);
  EXPECT_EQ(heap_.realloc(large, 8 * mib), large);
  EXPECT_EQ(heap_.realloc(large, mib + 1), large);
}

TEST_F(MemoryHeapTest, ErrnoStaysWhereACallSucceeds) {
  errno = 7;
  void* const block = heap_.malloc(100);
  void* const large = heap_.realloc(heap_.calloc(1, 2 * mib), 3 * mib);
  heap_.free(block);
  heap_.free(large);
  EXPECT_EQ(errno, 7);
}

// As many blocks of each size as there is room for; then all of the heap is to be had again.
TEST_F(MemoryHeapTest, ExhaustionEndsWithTheNextFree) {
  for (const std::size_t bytes :
       {std::size_t{16}, std::size_t{1000}, std::size_t{4096}, std::size_t{20000}, mib, 3 * mib}) {
    std::vector<void*> blocks;
    errno = 0;
    while (void* block = heap_.malloc(bytes)) {
      ASSERT_EQ(errno, 0);
      blocks.push_back(block);
    }
    EXPECT_EQ(errno, ENOMEM);
    // Of chunks at most the end is lost, and of a group at most a block's size.
    EXPECT_GE(blocks.size() * bytes, 6 * group_bytes * 3 / 4) << bytes;
    EXPECT_EQ(heap_.calloc(1, bytes), nullptr);
    heap_.free(blocks.back());
    blocks.back() = heap_.calloc(1, bytes);
    ASSERT_NE(blocks.back(), nullptr);
    ASSERT_TRUE(all_equal(blocks.back(), bytes, 0));
    for (void* block : blocks) heap_.free(block);
    void* const everything = heap_.malloc(6 * group_bytes);
    EXPECT_NE(everything, nullptr) << "after blocks of " << bytes;
    heap_.free(everything);
    EXPECT_EQ(heap_.figures().in_use, 0u);
  }
  EXPECT_EQ(heap_.figures().most_in_use, 6 * chunks_per_group);
}

// Without a chunk left, room of other classes and tiers serves.
TEST_F(MemoryHeapTest, LargerBlocksServeWhereChunksAreShort) {
  void* const medium = heap_.malloc(5000);
  void* const small = heap_.malloc(1000);
  while (heap_.malloc(mib + 1) != nullptr) {
  }
  while (heap_.malloc(chunk_bytes) != nullptr) {
  }
  void* const other = heap_.malloc(500);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(heap_.usable_size(other), 1024u);
  EXPECT_EQ(address(other) / chunk_bytes, address(small) / chunk_bytes);
  EXPECT_EQ(address(heap_.memalign(256, 500)) % 256, 0u);
  heap_.free(medium);
  void* const page = heap_.malloc(4096);
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page, medium);
  while (heap_.malloc(4096) != nullptr) {
  }
  EXPECT_EQ(heap_.realloc(page, 2000), page) << "there is no room to move to";
}

TEST_F(MemoryHeapTest, ArenasGiveEmptyChunksBackButForOneOfAClass) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(heap_.malloc(4096));
  EXPECT_EQ(heap_.figures().in_use, 7u);
  for (void* block : blocks) heap_.free(block);
  EXPECT_EQ(heap_.figures().in_use, 1u);
  heap_.settle();
  EXPECT_EQ(heap_.figures().in_use, 0u);
}

TEST(MemoryHeap, NeedsRoomAndWords) {
  PlainProgram program({.bytes = group_bytes});
  PlainMemory memory(program, 0);
  MemoryHeap heap;
  EXPECT_FALSE(heap.owns(memory.memory().data())) << "it is not open yet";
  const Status refused = heap.open(memory, memory.memory().first(chunk_bytes - 1), 0);
  EXPECT_EQ(refused.code(), Code::no_memory);
  // A place that begins and ends anywhere.
  ASSERT_TRUE(heap.open(memory, memory.memory().subspan(100, 3 * chunk_bytes), 0).ok());
  EXPECT_EQ(heap.figures().chunks, 2u);
  EXPECT_EQ(heap.malloc(2 * chunk_bytes), memory.memory().data() + chunk_bytes);
  EXPECT_FALSE(heap.owns(memory.memory().data() + 3 * chunk_bytes));
}

TEST(MemoryHeap, TakesPagesOfOtherSizes) {
  for (const std::size_t page_bytes : {std::size_t{128}, std::size_t{16384}, chunk_bytes}) {
    PlainProgram program({.bytes = 2 * group_bytes, .page_bytes = page_bytes});
    PlainMemory memory(program, 0);
    MemoryHeap heap;
    ASSERT_TRUE(heap.open(memory, memory.memory(), 0).ok());
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (std::size_t bytes = 4000; bytes < mib; bytes += bytes / 2) {
      void* const block = heap.malloc(bytes);
      ASSERT_NE(block, nullptr);
      if (bytes > 4096) {
        EXPECT_EQ(address(block) % page_bytes, 0u);
      }
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i)
      EXPECT_TRUE(all_equal(blocks[i].first, blocks[i].second, static_cast<int>(i)));
    for (const auto& [block, bytes] : blocks) heap.free(block);
    EXPECT_NE(heap.malloc(2 * group_bytes), nullptr) << page_bytes;
  }
  PlainProgram program({.bytes = group_bytes, .page_bytes = 2 * chunk_bytes});
  PlainMemory memory(program, 0);
  EXPECT_EQ(MemoryHeap().open(memory, memory.memory(), 0).code(), Code::unsupported);
}

}  // namespace
}  // namespace tombolo::dsm::testing
