// SPDX-License-Identifier: Apache-2.0
// Purpose: misses in order bring more and more pages; other misses bring none.
#include "dsm/protocol/read_ahead.h"

#include <gtest/gtest.h>

namespace tombolo::dsm {
namespace {

Shape shape_of(Page pages, std::uint32_t cached, std::uint32_t most) {
  return {.pages = pages, .cached_pages = cached, .read_ahead = most};
}

TEST(ReadAhead, BringsThePagesBehindTheOneThatWasMissed) {
  ReadAhead ahead(shape_of(1000, 1000, 4));
  EXPECT_EQ(ahead.end_after(0), 1u);
  EXPECT_EQ(ahead.end_after(1), 3u);
  EXPECT_EQ(ahead.end_after(3), 6u);
  EXPECT_EQ(ahead.end_after(6), 11u);
  EXPECT_EQ(ahead.end_after(11), 16u) << "no more than was asked for";
  EXPECT_EQ(ahead.end_after(500), 501u) << "out of order";
  EXPECT_EQ(ahead.end_after(501), 503u) << "from the start again";
  EXPECT_EQ(ahead.end_after(502), 503u) << "one that was brought, and has gone";
}

TEST(ReadAhead, EndsWithTheMemory) {
  ReadAhead ahead(shape_of(10, 100, 8));
  EXPECT_EQ(ahead.end_after(6), 7u);
  EXPECT_EQ(ahead.end_after(7), 9u);
  EXPECT_EQ(ahead.end_after(9), 10u);
}

TEST(ReadAhead, LeavesMostOfTheCacheAlone) {
  ReadAhead small(shape_of(100, 8, 50));
  EXPECT_EQ(small.end_after(0), 1u);
  EXPECT_EQ(small.end_after(1), 3u);
  EXPECT_EQ(small.end_after(3), 6u);
  EXPECT_EQ(small.end_after(6), 9u) << "two, of eight";
  ReadAhead none(shape_of(100, 3, 50));
  EXPECT_EQ(none.end_after(0), 1u);
  EXPECT_EQ(none.end_after(1), 2u);
}

}  // namespace
}  // namespace tombolo::dsm
