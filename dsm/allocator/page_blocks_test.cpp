// SPDX-License-Identifier: Apache-2.0
// Purpose: blocks of whole pages: zones, striped blocks and chunks of arenas, their places, their
// growth, and the look at a block while its neighbours change.
// Thread safety: -
#include "dsm/allocator/page_blocks.h"

#include <gtest/gtest.h>

#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t mib = std::size_t{1} << 20;

struct PagesOf {
  PagesOf(PlainProgram& program, PlainMemory& memory)
      : words(0, program.shape().bytes / chunk_bytes, program.shape().threads),
        pages(memory, words, reinterpret_cast<std::uintptr_t>(memory.memory().data())),
        memory_(memory) {}

  std::uint64_t allocate(std::size_t bytes, std::size_t alignment = page) {
    const void* block = pages.allocate(bytes, alignment, Contents::any);
    EXPECT_NE(block, nullptr);
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(block) -
                                      memory_.memory().data());
  }
  ChunkNote note(std::uint64_t offset) const {
    return ChunkNote::unpack(memory_.load(words.note(offset / chunk_bytes)));
  }
  void free(std::uint64_t offset) { pages.free(offset, note(offset)); }
  bool resize(std::uint64_t offset, std::size_t bytes) {
    return pages.resize(offset, note(offset), bytes);
  }
  std::size_t usable(std::uint64_t offset) const { return pages.usable(offset, note(offset)); }
  std::uint64_t in_use() const { return memory_.load(words.chunks_in_use()); }

  HeapWords words;
  PageBlocks pages;

 private:
  PlainMemory& memory_;
};

class PageBlocksTest : public ::testing::Test {
 protected:
  PlainProgram program_{{.bytes = 4 * group_bytes}};
  PlainMemory memory_{program_, 0};
  PagesOf heap_{program_, memory_};
};

TEST_F(PageBlocksTest, ZonesServeUpToAMebibyteAndLieSideBySide) {
  const std::uint64_t a = heap_.allocate(page + 1);
  const std::uint64_t b = heap_.allocate(mib);
  EXPECT_EQ(heap_.note(a).tier, Tier::zone);
  EXPECT_EQ(heap_.note(b).tier, Tier::zone);
  EXPECT_EQ(heap_.usable(a), 2 * page);
  EXPECT_EQ(heap_.usable(b), mib);
  EXPECT_EQ(b, a + 2 * page);
  EXPECT_EQ(heap_.usable(a + page), 0u) << "no block begins there";
  EXPECT_EQ(heap_.usable(a + 1), 0u) << "no block begins there";
  EXPECT_EQ(heap_.usable(b + mib), 0u) << "this page is free";
  EXPECT_EQ(heap_.in_use(), chunks_per_group);
}

TEST_F(PageBlocksTest, LargeBlocksAreRunsOfChunks) {
  const std::uint64_t a = heap_.allocate(mib + 1);
  EXPECT_EQ(heap_.note(a).tier, Tier::striped);
  EXPECT_EQ(heap_.usable(a), mib + chunk_bytes);
  EXPECT_EQ(heap_.usable(a + chunk_bytes), 0u) << "no block begins there";
  EXPECT_EQ(heap_.usable(a + page), 0u) << "no block begins there";
  EXPECT_EQ(heap_.in_use(), 17u);
  heap_.free(a);
  EXPECT_EQ(heap_.usable(a), 0u);
  EXPECT_EQ(heap_.in_use(), 0u);
}

TEST_F(PageBlocksTest, FreePagesAreTakenAgainFirst) {
  const std::uint64_t a = heap_.allocate(3 * page);
  heap_.allocate(page);
  heap_.free(a);
  EXPECT_EQ(heap_.allocate(4 * page), a + 4 * page) << "three pages are free";
  EXPECT_EQ(heap_.allocate(2 * page), a);
  EXPECT_EQ(heap_.allocate(page), a + 2 * page);
}

// Without another zone, and after a search that has found how long the longest free run is.
TEST_F(PageBlocksTest, FreeNeighboursBecomeOneRun) {
  const std::uint64_t a = heap_.allocate(10 * page);
  const std::uint64_t b = heap_.allocate(5 * page);
  const std::uint64_t c = heap_.allocate(10 * page);
  for (int i = 0; i < 3; ++i) heap_.allocate(mib);
  heap_.allocate(231 * page);
  heap_.allocate(3 * group_bytes);
  heap_.free(a);
  heap_.free(c);
  EXPECT_EQ(heap_.pages.allocate(11 * page, page, Contents::any), nullptr);
  heap_.free(b);
  EXPECT_EQ(heap_.allocate(25 * page), a);
}

TEST_F(PageBlocksTest, ZonesGiveTheirChunksBackWhereTheyAreWanted) {
  const std::uint64_t zone = heap_.allocate(2 * page);
  heap_.free(zone);
  EXPECT_EQ(heap_.in_use(), chunks_per_group);
  heap_.allocate(4 * group_bytes);
  EXPECT_EQ(heap_.in_use(), 4 * chunks_per_group);
  EXPECT_EQ(heap_.pages.allocate(1, page, Contents::any), nullptr);
  EXPECT_FALSE(heap_.pages.claim_chunk());
}

TEST_F(PageBlocksTest, AZoneWithABlockStays) {
  const std::uint64_t kept = heap_.allocate(2 * page);
  EXPECT_EQ(heap_.pages.allocate(4 * group_bytes, page, Contents::any), nullptr);
  heap_.allocate(3 * group_bytes);
  EXPECT_EQ(heap_.usable(kept), 2 * page);
}

// Where no group is free there are smaller zones, one for each group, and at last runs of chunks.
TEST_F(PageBlocksTest, BlocksFitIntoTheLastChunks) {
  heap_.allocate(4 * group_bytes - 3 * chunk_bytes);
  const std::uint64_t a = heap_.allocate(17 * page);
  EXPECT_EQ(heap_.note(a).tier, Tier::zone);
  EXPECT_EQ(heap_.in_use(), 4 * chunks_per_group - 1);
  EXPECT_FALSE(heap_.resize(a, 33 * page)) << "the zone has 32 pages";
  const std::uint64_t b = heap_.allocate(16 * page);
  EXPECT_EQ(heap_.note(b).tier, Tier::striped);
  EXPECT_EQ(heap_.allocate(15 * page), a + 17 * page);
  EXPECT_EQ(heap_.pages.allocate(page, page, Contents::any), nullptr);
  heap_.free(b);
  EXPECT_EQ(heap_.allocate(page), b);
}

TEST_F(PageBlocksTest, BlocksAreAligned) {
  for (std::size_t alignment = page; alignment <= 2 * group_bytes; alignment *= 2)
    for (const std::size_t bytes : {page, 9 * page, mib + 1}) {
      heap_.allocate(page);
      const std::uint64_t block = heap_.allocate(bytes, alignment);
      const auto base = reinterpret_cast<std::uintptr_t>(memory_.memory().data());
      EXPECT_EQ((base + block) % alignment, 0u) << bytes;
      heap_.free(block);
    }
}

TEST_F(PageBlocksTest, StripedBlocksGrowAndShrinkInPlace) {
  const std::uint64_t a = heap_.allocate(2 * mib);
  EXPECT_TRUE(heap_.resize(a, 3 * mib));
  EXPECT_EQ(heap_.usable(a), 3 * mib);
  EXPECT_EQ(heap_.in_use(), 48u);
  const std::uint64_t b = heap_.allocate(2 * mib);
  EXPECT_EQ(b, a + 3 * mib);
  EXPECT_FALSE(heap_.resize(a, 3 * mib + 1)) << "there is another block";
  EXPECT_EQ(heap_.usable(a), 3 * mib);
  EXPECT_TRUE(heap_.resize(a, mib + 1));
  EXPECT_EQ(heap_.usable(a), mib + chunk_bytes);
  EXPECT_EQ(heap_.allocate(mib + chunk_bytes), a + mib + chunk_bytes);
  EXPECT_FALSE(heap_.resize(b, 16 * mib)) << "past the end";
  EXPECT_TRUE(heap_.resize(b, 11 * mib)) << "to the very end";
  EXPECT_FALSE(heap_.resize(b, mib)) << "of another tier";
}

TEST_F(PageBlocksTest, BlocksOfZonesGrowAndShrinkInPlace) {
  const std::uint64_t a = heap_.allocate(2 * page);
  EXPECT_TRUE(heap_.resize(a, 10 * page));
  EXPECT_EQ(heap_.usable(a), 10 * page);
  EXPECT_EQ(heap_.usable(a + 2 * page), 0u) << "no block begins there";
  const std::uint64_t b = heap_.allocate(page);
  EXPECT_EQ(b, a + 10 * page);
  EXPECT_FALSE(heap_.resize(a, 11 * page)) << "there is another block";
  EXPECT_TRUE(heap_.resize(a, 3 * page));
  EXPECT_EQ(heap_.usable(a), 3 * page);
  EXPECT_EQ(heap_.usable(b), page);
  EXPECT_EQ(heap_.allocate(7 * page), a + 3 * page);
  EXPECT_FALSE(heap_.resize(b, 2 * mib)) << "of another tier";
  EXPECT_TRUE(heap_.resize(b, mib));
}

TEST_F(PageBlocksTest, AGrownBlockEndsWithItsZone) {
  const std::uint64_t a = heap_.allocate(mib);
  for (int i = 0; i < 2; ++i) heap_.allocate(mib);
  const std::uint64_t last = heap_.allocate(2 * page);
  EXPECT_TRUE(heap_.resize(last, mib));
  EXPECT_EQ(last + mib, a + group_bytes);
  heap_.free(a);
  EXPECT_TRUE(heap_.resize(last, page));
  EXPECT_FALSE(heap_.resize(last, mib + page));
}

TEST_F(PageBlocksTest, MemoryThatWasUsedIsZeroWhereItIsAskedFor) {
  for (const std::size_t bytes : {6 * page, mib, 2 * mib + chunk_bytes}) {
    const std::uint64_t a = heap_.allocate(bytes);
    const std::size_t part = bytes / 2 / page * page;
    std::memset(memory_.memory().data() + a, 7, part);
    heap_.free(a);
    const auto* block =
        static_cast<const std::byte*>(heap_.pages.allocate(bytes, page, Contents::zero));
    ASSERT_EQ(block, memory_.memory().data() + a);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], std::byte{}) << i;
  }
}

TEST_F(PageBlocksTest, ChunksOfArenasComeFromTheOtherEnd) {
  const auto a = heap_.pages.claim_chunk();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->chunk, 4 * chunks_per_group - 1);
  EXPECT_FALSE(a->used_before);
  const auto b = heap_.pages.claim_chunk();
  EXPECT_EQ(b->chunk, a->chunk - 1);
  heap_.pages.release_chunk(a->chunk);
  const auto c = heap_.pages.claim_chunk();
  EXPECT_EQ(c->chunk, a->chunk);
  EXPECT_TRUE(c->used_before);
  EXPECT_EQ(heap_.in_use(), 2u);
}

// One thread looks at its block, without the lock, while the other takes and frees its neighbours.
TEST(Scheduled, ABlockIsSeenWhileItsNeighboursChange) {
  for (std::uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    PlainProgram program({.threads = 2, .bytes = group_bytes});
    PlainMemory first(program, 0);
    PagesOf heap(program, first);
    const std::uint64_t before = heap.allocate(2 * page);
    const std::uint64_t block = heap.allocate(2 * page);
    const std::uint64_t after = heap.allocate(2 * page);
    heap.free(before);
    heap.free(after);
    Turns turns(2, seed);
    program.run(
        [&](PlainMemory& memory) {
          PagesOf own(program, memory);
          for (int i = 0; i < 5; ++i) {
            if (memory.self() == 0) {
              EXPECT_EQ(own.usable(block), 2 * page);
            } else {
              EXPECT_EQ(own.allocate(page), before);
              EXPECT_TRUE(own.resize(before, 2 * page));
              EXPECT_EQ(own.allocate(page), after);
              own.free(before);
              own.free(after);
            }
          }
        },
        &turns);
  }
}

// The same where the neighbour's pages were never used.
TEST(Scheduled, ABlockIsSeenWhileANewNeighbourComes) {
  for (std::uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    PlainProgram program({.threads = 2, .bytes = group_bytes});
    PlainMemory first(program, 0);
    PagesOf heap(program, first);
    heap.allocate(page);
    const std::uint64_t block = heap.allocate(2 * page, 4 * page);
    Turns turns(2, seed);
    program.run(
        [&](PlainMemory& memory) {
          PagesOf own(program, memory);
          if (memory.self() == 1) {
            EXPECT_EQ(own.allocate(3 * page), block - 3 * page);
            return;
          }
          for (int i = 0; i < 12; ++i) EXPECT_EQ(own.usable(block), 2 * page);
        },
        &turns);
  }
}

}  // namespace
}  // namespace tombolo::dsm::testing
