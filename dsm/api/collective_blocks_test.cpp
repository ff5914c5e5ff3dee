// SPDX-License-Identifier: Apache-2.0
// Purpose: blocks that are taken together do not overlap, are alike for equal calls, and are used
// again.
#include "dsm/api/collective_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace tombolo::dsm {
namespace {

constexpr std::size_t page = 4096;
constexpr std::uint64_t start = std::uint64_t{1} << 40;

CollectiveBlocks blocks_of(std::size_t pages) {
  return {std::span(reinterpret_cast<std::byte*>(start), pages * page), page};
}
std::uint64_t at(const void* block) { return reinterpret_cast<std::uint64_t>(block) - start; }

TEST(CollectiveBlocks, AreWholeLinesAndLargeOnesWholePages) {
  CollectiveBlocks blocks = blocks_of(8);
  EXPECT_EQ(at(blocks.take(0)), 0u);
  EXPECT_EQ(at(blocks.take(65)), 64u);
  EXPECT_EQ(at(blocks.take(page)), page);
  EXPECT_EQ(at(blocks.take(1)), 192u);
  EXPECT_EQ(at(blocks.take(page + 1)), 2 * page);
  EXPECT_EQ(at(blocks.take(page - 1)), 4 * page) << "there is no room left on the first page";
}

TEST(CollectiveBlocks, ThatDoNotFitAreNull) {
  CollectiveBlocks blocks = blocks_of(2);
  EXPECT_EQ(blocks.take(2 * page + 1), nullptr);
  EXPECT_EQ(blocks.take(~std::size_t{0}), nullptr);
  ASSERT_NE(blocks.take(2 * page), nullptr);
  EXPECT_EQ(blocks.take(1), nullptr);
}

TEST(CollectiveBlocks, AreUsedAgain) {
  CollectiveBlocks blocks = blocks_of(2);
  void* const first = blocks.take(page);
  void* const second = blocks.take(page);
  EXPECT_EQ(blocks.take(64), nullptr);
  blocks.give_back(first);
  EXPECT_EQ(blocks.take(page), first);
  blocks.give_back(second);
  blocks.give_back(first);
  EXPECT_EQ(blocks.take(2 * page), first);
}

TEST(CollectiveBlocks, KnowTheirSizes) {
  CollectiveBlocks blocks = blocks_of(2);
  void* const block = blocks.take(100);
  ASSERT_NE(blocks.bytes_of(block), nullptr);
  EXPECT_EQ(*blocks.bytes_of(block), 100u);
  EXPECT_EQ(blocks.bytes_of(static_cast<std::byte*>(block) + 64), nullptr) << "inside of it";
  blocks.give_back(block);
  EXPECT_EQ(blocks.bytes_of(block), nullptr);
}

TEST(CollectiveBlocks, OfTwoThreadsAreAlikeAndDoNotOverlap) {
  constexpr std::uint64_t seed = 20;
  Random random(seed);
  CollectiveBlocks one = blocks_of(64);
  CollectiveBlocks other = blocks_of(64);
  std::vector<void*> live;
  for (int step = 0; step < 2000; ++step) {
    if (!live.empty() && random.below(2) == 0) {
      const std::size_t i = random.below(live.size());
      one.give_back(live[i]);
      other.give_back(live[i]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const std::size_t bytes = random.below(3 * page);
    void* const block = one.take(bytes);
    ASSERT_EQ(other.take(bytes), block) << "seed " << seed << ", step " << step;
    if (block == nullptr) continue;
    for (void* const each : live)
      ASSERT_TRUE(at(block) + bytes <= at(each) || at(each) + *one.bytes_of(each) <= at(block))
          << "seed " << seed << ", step " << step;
    live.push_back(block);
  }
  EXPECT_FALSE(live.empty());
}

}  // namespace
}  // namespace tombolo::dsm
