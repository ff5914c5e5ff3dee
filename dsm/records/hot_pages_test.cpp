// SPDX-License-Identifier: Apache-2.0
// Purpose: the hottest pages of all threads, and those that are shared falsely.
#include "dsm/records/hot_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

namespace tombolo::dsm {
namespace {

struct Missed {
  Thread thread;
  MissSite site;
};

// One page that these threads have missed there.
std::vector<SharedPage> of(std::initializer_list<Missed> all) {
  std::vector<HotPage> pages(3 * PageHeat::most_hot);
  for (const Missed& each : all) {
    HotPage& page = pages[each.thread * PageHeat::most_hot];
    page.page = 5;
    auto* const site = std::ranges::find_if(
        page.sites, [](const MissSite& known) { return known.loads + known.stores == 0; });
    *site = each.site;
    page.faults += each.site.loads + each.site.stores;
  }
  return hottest_of(pages, 10);
}
MissSite stores(std::uint32_t low, std::uint32_t high) {
  return {.stores = 1, .low = low, .high = high};
}
MissSite loads(std::uint32_t low, std::uint32_t high) {
  return {.loads = 1, .low = low, .high = high};
}

TEST(HotPages, AreSharedFalselyWhereStoresLieApart) {
  EXPECT_TRUE(of({{0, stores(0, 0)}, {1, stores(8, 16)}})[0].shared_falsely);
  EXPECT_TRUE(of({{0, stores(8, 16)}, {1, stores(0, 0)}})[0].shared_falsely);
  EXPECT_TRUE(of({{0, stores(100, 200)}, {2, loads(0, 92)}})[0].shared_falsely);
}

TEST(HotPages, AreSharedTrulyWhereAStoreMeetsAnotherThread) {
  EXPECT_FALSE(of({{0, stores(0, 0)}, {1, stores(7, 16)}})[0].shared_falsely);
  EXPECT_FALSE(of({{0, stores(0, 100)}, {1, loads(50, 50)}})[0].shared_falsely);
  EXPECT_FALSE(of({{0, stores(0, 0)}, {1, stores(64, 64)}, {2, loads(0, 0)}})[0].shared_falsely);
}

TEST(HotPages, AreNotSharedFalselyByOneThreadOrByLoads) {
  EXPECT_FALSE(of({{0, stores(0, 0)}, {0, stores(64, 64)}})[0].shared_falsely);
  EXPECT_FALSE(of({{0, loads(0, 0)}, {1, loads(64, 64)}})[0].shared_falsely);
}

TEST(HotPages, AreAddedUpOverThreads) {
  std::vector<HotPage> all(2 * PageHeat::most_hot);
  all[0] = {.page = 1, .faults = 10, .fetches = 1, .sent = 2};
  all[1] = {.page = 2, .faults = 9};
  all[PageHeat::most_hot] = {.page = 2, .faults = 4, .fetches = 5, .sent = 6};
  const auto pages = hottest_of(all, 10);
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].page, 2u);
  EXPECT_EQ(pages[0].faults, 13u);
  EXPECT_EQ(pages[0].fetches, 5u);
  EXPECT_EQ(pages[0].sent, 6u);
  EXPECT_EQ(pages[0].threads, (std::vector<Thread>{0, 1}));
  EXPECT_EQ(pages[1].threads, (std::vector<Thread>{0}));
  EXPECT_EQ(hottest_of(all, 1).size(), 1u);
}

TEST(HotPages, BecomeRowsWithAddressesAndPlaces) {
  const auto pages = of({{0, stores(0, 0)}, {1, stores(64, 72)}});
  const auto rows = rows_of(pages, 0x10000, 4096);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(std::get<std::string>(rows[0][0].second), "0x15000");
  const auto& places = std::get<std::vector<std::string>>(rows[0].back().second);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[1], " (thread 1: 1 stores, 0 loads, bytes 64 to 72)");
}

}  // namespace
}  // namespace tombolo::dsm
