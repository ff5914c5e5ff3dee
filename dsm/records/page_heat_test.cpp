// SPDX-License-Identifier: Apache-2.0
// Purpose: pages are counted one by one, and their misses by instruction.
#include "dsm/records/page_heat.h"

#include <gtest/gtest.h>

namespace tombolo::dsm {
namespace {

const Shape shape{.threads = 1, .pages = 5000, .page_bytes = 4096, .cached_pages = 8};

const void* instruction(std::uint64_t number) {
  static const char code[64] = {};
  return code + number;
}

TEST(PageHeat, PutsThePagesWithTheMostFaultsFirst) {
  PageHeat heat(shape);
  ASSERT_TRUE(heat.ready());
  for (int i = 0; i < 3; ++i) heat.fault(4999, 0, false, nullptr);
  for (int i = 0; i < 2; ++i) heat.fault(0, 0, false, nullptr);
  for (int i = 0; i < 2; ++i) heat.fault(1024, 0, true, nullptr);
  heat.fetched(4999);
  heat.sent(0);
  heat.sent(0);
  heat.fetched(7);  // read ahead: never missed
  const auto hottest = heat.hottest();
  EXPECT_EQ(hottest[0].page, 4999u);
  EXPECT_EQ(hottest[0].faults, 3u);
  EXPECT_EQ(hottest[0].fetches, 1u);
  EXPECT_EQ(hottest[0].sent, 0u);
  EXPECT_EQ(hottest[1].page, 0u);
  EXPECT_EQ(hottest[1].sent, 2u);
  EXPECT_EQ(hottest[2].page, 1024u);
  EXPECT_EQ(hottest[3].faults, 0u);
}

TEST(PageHeat, KeepsTheHottestOfManyPages) {
  PageHeat heat(shape);
  for (Page page = 0; page < 100; ++page)
    for (Page i = 0; i <= page; ++i) heat.fault(page, 0, false, nullptr);
  const auto hottest = heat.hottest();
  for (std::size_t i = 0; i < hottest.size(); ++i) EXPECT_EQ(hottest[i].page, 99 - i);
}

TEST(PageHeat, CountsMissesByInstruction) {
  PageHeat heat(shape);
  heat.fault(3, 100, true, instruction(0));
  heat.fault(3, 40, true, instruction(0));
  heat.fault(3, 70, false, instruction(0));
  heat.fault(3, 8, false, instruction(1));
  heat.fault(4, 9, false, instruction(1));
  heat.fault(3, 8, false, nullptr);
  const auto hottest = heat.hottest();
  ASSERT_EQ(hottest[0].faults, 5u);
  const MissSite& first = hottest[0].sites[0];
  EXPECT_EQ(first.stores, 2u);
  EXPECT_EQ(first.loads, 1u);
  EXPECT_EQ(first.low, 40u);
  EXPECT_EQ(first.high, 100u);
  EXPECT_NE(first.code, 0u);
  EXPECT_EQ(hottest[0].sites[1].loads, 1u);
  EXPECT_EQ(hottest[0].sites[1].low, 8u);
  EXPECT_EQ(hottest[0].sites[2].loads + hottest[0].sites[2].stores, 0u);
  EXPECT_EQ(hottest[1].sites[0].low, 9u);
}

TEST(PageHeat, KeepsThePlacesWithTheMostStores) {
  PageHeat heat(shape);
  for (std::uint64_t number = 0; number < 6; ++number)
    for (std::uint64_t i = 0; i <= number; ++i)
      heat.fault(1, 8 * number, true, instruction(number));
  const auto hottest = heat.hottest();
  for (std::size_t i = 0; i < HotPage::most_sites; ++i) {
    EXPECT_EQ(hottest[0].sites[i].stores, 6 - i);
    EXPECT_EQ(hottest[0].sites[i].low, 8 * (5 - i));
  }
}

TEST(PageHeat, GoesOnWhenThePlacesDoNotFit) {
  PageHeat heat(shape);
  for (std::uint64_t round = 0; round < 4; ++round)
    for (Page page = 0; page < shape.pages; ++page) heat.fault(page, 0, true, instruction(round));
  EXPECT_EQ(heat.hottest()[0].faults, 4u);
}

}  // namespace
}  // namespace tombolo::dsm
