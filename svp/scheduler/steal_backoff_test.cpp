// SPDX-License-Identifier: Apache-2.0
// Purpose: tests how often an idle worker asks, and when it naps.
// Thread safety: -
#include "svp/scheduler/steal_backoff.h"

#include <gtest/gtest.h>

#include <vector>

namespace tombolo::svp {
namespace {

constexpr auto long_task = StealBackoff::short_task;
constexpr auto short_task = StealBackoff::short_task - std::chrono::nanoseconds(1);

// Looks without an ask, up to the next one.
std::uint32_t gap(StealBackoff& backoff) {
  std::uint32_t looks = 0;
  while (!backoff.look()) ++looks;
  return looks;
}
void look(StealBackoff& backoff, int times) {
  for (int i = 0; i < times; ++i) backoff.look();
}

// PTC1.
TEST(WorkersPatience, AsksLessOftenTheLongerItFindsNothing) {
  StealBackoff backoff;
  std::uint32_t looks = 0;
  std::uint32_t longest_gap = 0;
  while (looks < 100000) {
    const std::uint32_t before = looks;
    const std::uint32_t between = gap(backoff);
    looks += between + 1;
    if (before < 16) {
      EXPECT_EQ(between, 0u) << before;
    }
    EXPECT_LE(between, before / 16) << before;
    EXPECT_GE(between, longest_gap) << before;
    longest_gap = between;
  }
  EXPECT_EQ(longest_gap, StealBackoff::longest - 1);
}

TEST(WorkersPatience, IsQuickAtFirst) {
  StealBackoff backoff;
  look(backoff, StealBackoff::quick);
  EXPECT_TRUE(backoff.is_quick());
  look(backoff, 1);
  EXPECT_FALSE(backoff.is_quick());
}

TEST(WorkersPatience, BeginsAnewAfterATaskThatWasWorthIt) {
  StealBackoff backoff;
  look(backoff, 10000);
  ASSERT_TRUE(backoff.measures());
  backoff.worked(short_task);
  EXPECT_FALSE(backoff.is_quick());
  EXPECT_TRUE(backoff.measures());
  backoff.worked(long_task);
  EXPECT_TRUE(backoff.is_quick());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(gap(backoff), 0u) << i;
}

TEST(WorkersPatience, MeasuresNoTaskThatComesSoon) {
  StealBackoff backoff;
  for (int i = 0; i < 100; ++i) {
    look(backoff, StealBackoff::quick);
    EXPECT_FALSE(backoff.measures());
  }
  EXPECT_EQ(gap(backoff), 0u);
}

TEST(WorkersPatience, AsksWhenItWakes) {
  StealBackoff backoff;
  look(backoff, 10000);
  while (!backoff.look()) {
  }
  backoff.wakes(1);
  EXPECT_EQ(gap(backoff), 0u);
  EXPECT_EQ(gap(backoff), StealBackoff::longest - 1);
}

// PTC2.
TEST(WorkersPatience, NapsInTurnAfterSleepsInVain) {
  StealBackoff backoff;
  look(backoff, 100);
  std::uint64_t signals = 0;
  const auto sleeps = [&](int times) {
    std::vector<bool> naps;
    for (int i = 0; i < times; ++i) {
      naps.push_back(backoff.sleeps(signals));
      backoff.wakes(++signals);
    }
    return naps;
  };
  const std::vector<bool> expected{false, false, false, false, true, false, true, false, true};
  EXPECT_EQ(sleeps(9), expected);
  ASSERT_TRUE(backoff.measures());
  backoff.worked(short_task);
  EXPECT_EQ(sleeps(2), (std::vector<bool>{false, true}));
  backoff.worked(long_task);
  EXPECT_EQ(sleeps(9), expected);
}

// PTC2: as a worker that looks for messages every now and then.
TEST(WorkersPatience, CountsNoSleepThatEndsByItself) {
  StealBackoff backoff;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(backoff.sleeps(7)) << i;
    backoff.wakes(7);
  }
}

}  // namespace
}  // namespace tombolo::svp
