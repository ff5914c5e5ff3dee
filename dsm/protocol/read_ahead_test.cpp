// SPDX-License-Identifier: Apache-2.0
// Purpose: misses that follow each other at one distance bring more and more pages; other misses
// bring none.
#include "dsm/protocol/read_ahead.h"

#include <gtest/gtest.h>

#include <vector>

namespace tombolo::dsm {
namespace {

Shape shape_of(Page pages, std::uint32_t cached, std::uint32_t most) {
  return {.pages = pages, .cached_pages = cached, .read_ahead = most};
}

using Pages = std::vector<Page>;
Pages brought(ReadAhead& ahead, Page page) {
  const PageRun run = ahead.after(page);
  Pages pages;
  for (Page i = 0; i < run.count; ++i) pages.push_back(run[i]);
  return pages;
}

TEST(ReadAhead, BringsThePagesBehindTheOneThatWasMissed) {
  ReadAhead ahead(shape_of(2000, 1000, 4));
  EXPECT_EQ(brought(ahead, 0), Pages({}));
  EXPECT_EQ(brought(ahead, 1), Pages({2}));
  EXPECT_EQ(brought(ahead, 3), Pages({4, 5}));
  EXPECT_EQ(brought(ahead, 6), Pages({7, 8, 9, 10}));
  EXPECT_EQ(brought(ahead, 11), Pages({12, 13, 14, 15})) << "no more than was asked for";
  EXPECT_EQ(brought(ahead, 1500), Pages({})) << "out of order";
  EXPECT_EQ(brought(ahead, 1501), Pages({1502})) << "from the start again";
  EXPECT_EQ(brought(ahead, 1502), Pages({})) << "one that was brought, and has gone";
  EXPECT_EQ(brought(ahead, 1503), Pages({1504}));
  EXPECT_EQ(brought(ahead, 16), Pages({17, 18, 19, 20})) << "the first stream is still known";
}

TEST(ReadAhead, KnowsAnyDistanceByItsThirdMiss) {
  ReadAhead ahead(shape_of(10'000, 1000, 4));
  EXPECT_EQ(brought(ahead, 100), Pages({}));
  EXPECT_EQ(brought(ahead, 108), Pages({}));
  EXPECT_EQ(brought(ahead, 116), Pages({124}));
  EXPECT_EQ(brought(ahead, 132), Pages({140, 148}));
  ReadAhead back(shape_of(10'000, 1000, 4));
  EXPECT_EQ(brought(back, 500), Pages({}));
  EXPECT_EQ(brought(back, 497), Pages({}));
  EXPECT_EQ(brought(back, 494), Pages({491}));
  EXPECT_EQ(brought(back, 488), Pages({485, 482}));
}

TEST(ReadAhead, LetsStreamsTakeTurns) {
  ReadAhead ahead(shape_of(100'000, 1000, 2));
  for (const Page base : {Page{0}, Page{20'000}, Page{40'000}, Page{60'000}})
    EXPECT_EQ(brought(ahead, base), Pages({}));
  for (const Page base : {Page{0}, Page{20'000}, Page{40'000}, Page{60'000}})
    EXPECT_EQ(brought(ahead, base + 1), Pages({base + 2}));
  EXPECT_EQ(brought(ahead, 80'000), Pages({})) << "in place of the one that was used longest ago";
  EXPECT_EQ(brought(ahead, 80'001), Pages({80'002}));
  EXPECT_EQ(brought(ahead, 20'003), Pages({20'004, 20'005}));
  EXPECT_EQ(brought(ahead, 3), Pages({}));
}

TEST(ReadAhead, BringsNothingWhereMissesHaveNoOrder) {
  ReadAhead ahead(shape_of(100'000, 1000, 8));
  for (const Page page : {50u, 10u, 90u, 14u, 77u, 3u, 60u, 61'000u, 20'000u, 2'000u, 90'000u, 50u})
    EXPECT_EQ(brought(ahead, page), Pages({})) << page;
  EXPECT_EQ(brought(ahead, 50), Pages({})) << "the same again";
}

// Those that a stream has gone past, and that it has not.
TEST(ReadAhead, NamesThePagesThatAStreamHasPassed) {
  ReadAhead ahead(shape_of(2000, 1000, 4));
  const auto passed = [&](Page page) {
    PageRun run;
    ahead.after(page, run);
    Pages pages;
    for (Page i = 0; i < run.count; ++i) pages.push_back(run[i]);
    return pages;
  };
  EXPECT_EQ(passed(0), Pages({}));
  EXPECT_EQ(passed(1), Pages({})) << "nothing was brought besides";
  EXPECT_EQ(passed(3), Pages({2}));
  EXPECT_EQ(passed(6), Pages({4, 5}));
  EXPECT_EQ(passed(8), Pages({})) << "amid 7 to 10";
  EXPECT_EQ(passed(1500), Pages({}));
  EXPECT_EQ(passed(9), Pages({})) << "from the start again";
  EXPECT_EQ(passed(11), Pages({10}));
  ReadAhead back(shape_of(2000, 1000, 4));
  PageRun run;
  for (const Page page : {500U, 497U, 494U}) back.after(page, run);
  back.after(488, run);
  EXPECT_EQ(run.count, 1U);
  EXPECT_EQ(run[0], 491U);
}

TEST(ReadAhead, EndsWithTheMemory) {
  ReadAhead ahead(shape_of(10, 100, 8));
  EXPECT_EQ(brought(ahead, 6), Pages({}));
  EXPECT_EQ(brought(ahead, 7), Pages({8}));
  EXPECT_EQ(brought(ahead, 9), Pages({}));
  ReadAhead back(shape_of(10, 100, 8));
  EXPECT_EQ(brought(back, 5), Pages({}));
  EXPECT_EQ(brought(back, 3), Pages({}));
  EXPECT_EQ(brought(back, 1), Pages({}));
}

// DRA3
TEST(ReadAhead, EndsBeforeAPageThatIsNotToBeBrought) {
  ReadAhead first(shape_of(100, 100, 8));
  first.stop_at(30);
  first.stop_at(12);
  EXPECT_EQ(brought(first, 10), Pages({}));
  EXPECT_EQ(brought(first, 11), Pages({}));
  ReadAhead second(shape_of(100, 100, 8));
  second.stop_at(30);
  EXPECT_EQ(brought(second, 26), Pages({}));
  EXPECT_EQ(brought(second, 27), Pages({28}));
  EXPECT_EQ(brought(second, 29), Pages({}));
  ReadAhead back(shape_of(100, 100, 8));
  back.stop_at(60);
  EXPECT_EQ(brought(back, 80), Pages({}));
  EXPECT_EQ(brought(back, 76), Pages({}));
  EXPECT_EQ(brought(back, 72), Pages({68}));
  EXPECT_EQ(brought(back, 64), Pages({}));
}

TEST(ReadAhead, LeavesMostOfTheCacheAlone) {
  ReadAhead small(shape_of(100, 8, 50));
  EXPECT_EQ(brought(small, 0), Pages({}));
  EXPECT_EQ(brought(small, 1), Pages({2}));
  EXPECT_EQ(brought(small, 3), Pages({4, 5}));
  EXPECT_EQ(brought(small, 6), Pages({7, 8})) << "two, of eight";
  ReadAhead none(shape_of(100, 3, 50));
  EXPECT_EQ(brought(none, 0), Pages({}));
  EXPECT_EQ(brought(none, 1), Pages({}));
}

}  // namespace
}  // namespace tombolo::dsm
