// SPDX-License-Identifier: Apache-2.0
// Purpose: the size classes: every size and alignment has a block that is large enough and aligned,
// and not much larger, and each byte of a chunk is of the block that it lies in.
// Thread safety: -
#include "dsm/allocator/size_classes.h"

#include <gtest/gtest.h>

namespace tombolo::dsm {
namespace {

TEST(SizeClasses, GrowFromOneUnitToAPage) {
  EXPECT_EQ(block_bytes(0), 16u);
  EXPECT_EQ(block_bytes(7), 128u);
  EXPECT_EQ(block_bytes(8), 160u);
  EXPECT_EQ(block_bytes(SizeClasses::count - 1), 4096u);
  for (SizeClass c = 1; c < SizeClasses::count; ++c) {
    EXPECT_GT(block_bytes(c), block_bytes(c - 1));
    EXPECT_EQ(block_bytes(c) % least_alignment, 0u);
  }
}

TEST(SizeClasses, AreTheSmallestThatHoldASize) {
  for (std::size_t bytes = 0; bytes <= most_in_arena; ++bytes) {
    const auto c = size_class_of(bytes, 1);
    ASSERT_TRUE(c) << bytes;
    EXPECT_GE(block_bytes(*c), bytes);
    if (*c > 0) {
      EXPECT_LT(block_bytes(*c - 1), bytes);
    }
    // A fifth at most.
    if (bytes > 128) {
      EXPECT_LE((block_bytes(*c) - bytes) * 5, block_bytes(*c)) << bytes;
    }
  }
  EXPECT_FALSE(size_class_of(most_in_arena + 1, 1));
}

TEST(SizeClasses, AlignBlocksByTheirSize) {
  for (std::size_t alignment = 1; alignment <= most_in_arena; alignment *= 2)
    for (const std::size_t bytes : {std::size_t{1}, alignment - 1, alignment, alignment + 1}) {
      const auto c = size_class_of(bytes, alignment);
      if (bytes > most_in_arena) {
        EXPECT_FALSE(c);
        continue;
      }
      ASSERT_TRUE(c) << bytes << " at " << alignment;
      EXPECT_GE(block_bytes(*c), bytes);
      EXPECT_EQ(block_bytes(*c) % alignment, 0u);
    }
  EXPECT_FALSE(size_class_of(1, 2 * most_in_arena));
}

TEST(SizeClasses, FindTheBlockOfEachByteOfAChunk) {
  for (SizeClass c = 0; c < SizeClasses::count; ++c) {
    EXPECT_LE(blocks_per_chunk(c), HeapWords::returned_words_per_chunk * 64);
    for (std::uint64_t offset = 0; offset < chunk_bytes; ++offset)
      ASSERT_EQ(block_at(c, offset), offset / block_bytes(c)) << offset;
  }
}

}  // namespace
}  // namespace tombolo::dsm
