// SPDX-License-Identifier: Apache-2.0
#include "host/images/move_history.h"

#include <gtest/gtest.h>

namespace tombolo::host {
namespace {

using namespace std::chrono_literals;

constexpr AddressRange pages{0x10000, 0x20000};
constexpr AddressRange overlapping{0x1f000, 0x30000};
constexpr AddressRange behind{0x20000, 0x30000};

TEST(MoveHistory, PaysUntilSeveralWindowsHaveLivedForAMoment) {
  MoveHistory history;
  EXPECT_TRUE(history.pays(pages));
  history.ended(pages, 9us, 10us);
  EXPECT_TRUE(history.pays(pages)) << "one may be an accident";
  history.ended(pages, 9us, 10us);
  EXPECT_FALSE(history.pays(pages));
  EXPECT_FALSE(history.pays(overlapping));
  EXPECT_TRUE(history.pays(behind));
  history.ended(pages, 9us, 10us);
  EXPECT_FALSE(history.pays(pages));
}

TEST(MoveHistory, PaysAgainAfterOneThatLivedAsLongAsThePagesMove) {
  MoveHistory history;
  for (int i = 0; i < 3; ++i) history.ended(pages, 1us, 10us);
  history.ended(overlapping, 10us, 10us);
  EXPECT_TRUE(history.pays(pages)) << "the latest over some of the pages counts";
  EXPECT_TRUE(history.pays(overlapping));
  history.ended(pages, 1us, 10us);
  EXPECT_TRUE(history.pays(pages)) << "they are counted anew";
  history.ended(pages, 1us, 10us);
  EXPECT_FALSE(history.pays(pages));
}

TEST(MoveHistory, TellsHowLongTheLastMoveTook) {
  MoveHistory history;
  EXPECT_EQ(history.moving(pages), 0us);
  history.ended(pages, 1us, 10us);
  EXPECT_EQ(history.moving(overlapping), 10us);
  EXPECT_EQ(history.moving(behind), 0us);
  history.ended(overlapping, 1us, 20us);
  EXPECT_EQ(history.moving(pages), 20us);
}

TEST(MoveHistory, ForgetsTheOldestRanges) {
  MoveHistory history;
  const auto range = [](std::size_t i) { return AddressRange{i * 0x1000, (i + 1) * 0x1000}; };
  for (std::size_t i = 1; i <= MoveHistory::most_ranges + 1; ++i)
    for (int n = 0; n < MoveHistory::most_short_lives; ++n) history.ended(range(i), 1us, 10us);
  EXPECT_TRUE(history.pays(range(1)));
  EXPECT_FALSE(history.pays(range(2)));
  EXPECT_FALSE(history.pays(range(MoveHistory::most_ranges + 1)));
}

}  // namespace
}  // namespace tombolo::host
