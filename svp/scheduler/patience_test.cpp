// SPDX-License-Identifier: Apache-2.0
// Purpose: tests how often an idle worker asks, and when it naps.
// Thread safety: -
#include "svp/scheduler/patience.h"

#include <gtest/gtest.h>

#include <vector>

namespace tombolo::svp {
namespace {

constexpr auto long_task = Patience::short_task;
constexpr auto short_task = Patience::short_task - std::chrono::nanoseconds(1);

// Looks without an ask, up to the next one.
std::uint32_t gap(Patience& patience) {
  std::uint32_t looks = 0;
  while (!patience.look()) ++looks;
  return looks;
}
void look(Patience& patience, int times) {
  for (int i = 0; i < times; ++i) patience.look();
}

// PTC1.
TEST(WorkersPatience, AsksLessOftenTheLongerItFindsNothing) {
  Patience patience;
  std::uint32_t looks = 0;
  std::uint32_t longest_gap = 0;
  while (looks < 100000) {
    const std::uint32_t before = looks;
    const std::uint32_t between = gap(patience);
    looks += between + 1;
    if (before < 16) {
      EXPECT_EQ(between, 0u) << before;
    }
    EXPECT_LE(between, before / 16) << before;
    EXPECT_GE(between, longest_gap) << before;
    longest_gap = between;
  }
  EXPECT_EQ(longest_gap, Patience::longest - 1);
}

TEST(WorkersPatience, IsQuickAtFirst) {
  Patience patience;
  look(patience, Patience::quick);
  EXPECT_TRUE(patience.is_quick());
  look(patience, 1);
  EXPECT_FALSE(patience.is_quick());
}

TEST(WorkersPatience, BeginsAnewAfterATaskThatWasWorthIt) {
  Patience patience;
  look(patience, 10000);
  ASSERT_TRUE(patience.measures());
  patience.worked(short_task);
  EXPECT_FALSE(patience.is_quick());
  EXPECT_TRUE(patience.measures());
  patience.worked(long_task);
  EXPECT_TRUE(patience.is_quick());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(gap(patience), 0u) << i;
}

TEST(WorkersPatience, MeasuresNoTaskThatComesSoon) {
  Patience patience;
  for (int i = 0; i < 100; ++i) {
    look(patience, Patience::quick);
    EXPECT_FALSE(patience.measures());
  }
  EXPECT_EQ(gap(patience), 0u);
}

TEST(WorkersPatience, AsksWhenItWakes) {
  Patience patience;
  look(patience, 10000);
  while (!patience.look()) {
  }
  patience.wakes(1);
  EXPECT_EQ(gap(patience), 0u);
  EXPECT_EQ(gap(patience), Patience::longest - 1);
}

// PTC2.
TEST(WorkersPatience, NapsInTurnAfterSleepsInVain) {
  Patience patience;
  look(patience, 100);
  std::uint64_t signals = 0;
  const auto sleeps = [&](int times) {
    std::vector<bool> naps;
    for (int i = 0; i < times; ++i) {
      naps.push_back(patience.sleeps(signals));
      patience.wakes(++signals);
    }
    return naps;
  };
  const std::vector<bool> expected{false, false, false, false, true, false, true, false, true};
  EXPECT_EQ(sleeps(9), expected);
  ASSERT_TRUE(patience.measures());
  patience.worked(short_task);
  EXPECT_EQ(sleeps(2), (std::vector<bool>{false, true}));
  patience.worked(long_task);
  EXPECT_EQ(sleeps(9), expected);
}

// PTC2: as a worker that looks for messages every now and then.
TEST(WorkersPatience, CountsNoSleepThatEndsByItself) {
  Patience patience;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(patience.sleeps(7)) << i;
    patience.wakes(7);
  }
}

}  // namespace
}  // namespace tombolo::svp
