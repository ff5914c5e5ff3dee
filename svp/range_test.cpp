// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the indices of families: empty, negative, endless ones, and the ends of numbers.
// Thread safety: -
#include "svp/range.h"

#include <gtest/gtest.h>

#include <limits>

namespace tombolo::svp {
namespace {

constexpr Index lowest = std::numeric_limits<Index>::min();

TEST(Range, CountsShortOfTheLimit) {
  EXPECT_EQ((Range{.start = 2, .limit = 7}.count()), 5u);
  EXPECT_EQ((Range{.start = 0, .limit = 10, .step = 3}.count()), 4u);
  EXPECT_EQ((Range{.start = 0, .limit = 9, .step = 3}.count()), 3u);
  EXPECT_EQ((Range{.start = -4, .limit = 4, .step = 2}.count()), 4u);
  EXPECT_EQ(Range{}.count(), 1u);
}

TEST(Range, CountsDown) {
  EXPECT_EQ((Range{.start = 5, .limit = 0, .step = -1}.count()), 5u);
  EXPECT_EQ((Range{.start = 5, .limit = -1, .step = -2}.count()), 3u);
  EXPECT_EQ((Range{.start = 5, .limit = 0, .step = -2}.index(2)), 1);
}

TEST(Range, IsEmptyIfTheLimitIsBehind) {
  EXPECT_EQ((Range{.start = 3, .limit = 3}.count()), 0u);
  EXPECT_EQ((Range{.start = 4, .limit = 3}.count()), 0u);
  EXPECT_EQ((Range{.start = 3, .limit = 4, .step = -1}.count()), 0u);
  EXPECT_EQ((Range{.start = 3, .limit = 3, .step = -1}.count()), 0u);
  EXPECT_EQ((Range{.start = 3, .limit = 3, .step = 2}.count()), 0u);
  EXPECT_EQ((Range{.start = 3, .limit = 3, .step = -2}.count()), 0u);
}

TEST(Range, ReachesFromEndToEndOfTheNumbers) {
  EXPECT_EQ((Range{.start = lowest, .limit = unbounded - 1}.count()), ~std::uint64_t{0} - 1);
  EXPECT_EQ((Range{.start = unbounded, .limit = lowest, .step = lowest}.count()), 2u);
  EXPECT_EQ((Range{.start = unbounded, .limit = lowest, .step = lowest}.index(1)), -1);
}

TEST(Range, IsEndlessWithoutLimit) {
  EXPECT_EQ((Range{.start = 5, .limit = unbounded}.count()), Range::endless);
  EXPECT_EQ((Range{.start = 5, .limit = unbounded, .step = -1}.count()), Range::endless);
}

TEST(RangeDeathTest, HasAStep) {
  EXPECT_DEATH((Range{.start = 1, .limit = 5, .step = 0}.check()),
               "create: a family from 1 to 5 with step 0");
}

}  // namespace
}  // namespace tombolo::svp
