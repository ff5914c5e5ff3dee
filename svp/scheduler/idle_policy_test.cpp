// SPDX-License-Identifier: Apache-2.0
// Purpose: tests how often an idle worker asks, how long it looks before it sleeps, beside other
// programs and without, and when it naps.
// Thread safety: -
#include "svp/scheduler/idle_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tombolo::svp {
namespace {

using machine::WaitPolicy;
using machine::YieldCost;
using For = IdlePolicy::For;

constexpr WaitPolicy waiting{.polls = 400, .yields = 30};

constexpr auto long_task = IdlePolicy::short_task;
constexpr auto short_task = IdlePolicy::short_task - std::chrono::nanoseconds(1);

// Looks without an ask, up to the next one.
std::uint32_t gap(IdlePolicy& idle_policy) {
  std::uint32_t looks = 0;
  while (!idle_policy.look()) ++looks;
  return looks;
}
void look(IdlePolicy& idle_policy, int times) {
  for (int i = 0; i < times; ++i) idle_policy.look();
}

// IDP1.
TEST(AsksOfAnIdleWorker, AsksLessOftenTheLongerItFindsNothing) {
  IdlePolicy idle_policy(waiting);
  std::uint32_t looks = 0;
  std::uint32_t longest_gap = 0;
  while (looks < 100000) {
    const std::uint32_t before = looks;
    const std::uint32_t between = gap(idle_policy);
    looks += between + 1;
    if (before < 16) {
      EXPECT_EQ(between, 0u) << before;
    }
    EXPECT_LE(between, before / 16) << before;
    EXPECT_GE(between, longest_gap) << before;
    longest_gap = between;
  }
  EXPECT_EQ(longest_gap, IdlePolicy::longest - 1);
}

TEST(AsksOfAnIdleWorker, IsQuickAtFirst) {
  IdlePolicy idle_policy(waiting);
  look(idle_policy, IdlePolicy::quick);
  EXPECT_TRUE(idle_policy.is_quick());
  look(idle_policy, 1);
  EXPECT_FALSE(idle_policy.is_quick());
}

TEST(AsksOfAnIdleWorker, BeginsAnewAfterATaskThatWasWorthIt) {
  IdlePolicy idle_policy(waiting);
  look(idle_policy, 10000);
  ASSERT_TRUE(idle_policy.measures());
  idle_policy.worked(short_task);
  EXPECT_FALSE(idle_policy.is_quick());
  EXPECT_TRUE(idle_policy.measures());
  idle_policy.worked(long_task);
  EXPECT_TRUE(idle_policy.is_quick());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(gap(idle_policy), 0u) << i;
}

TEST(AsksOfAnIdleWorker, MeasuresNoTaskThatComesSoon) {
  IdlePolicy idle_policy(waiting);
  for (int i = 0; i < 100; ++i) {
    look(idle_policy, IdlePolicy::quick);
    EXPECT_FALSE(idle_policy.measures());
  }
  EXPECT_EQ(gap(idle_policy), 0u);
}

TEST(AsksOfAnIdleWorker, AsksWhenItWakes) {
  IdlePolicy idle_policy(waiting);
  look(idle_policy, 10000);
  while (!idle_policy.look()) {
  }
  idle_policy.wakes(1);
  EXPECT_EQ(gap(idle_policy), 0u);
  EXPECT_EQ(gap(idle_policy), IdlePolicy::longest - 1);
}

// IDP2.
TEST(AsksOfAnIdleWorker, NapsInTurnAfterSleepsInVain) {
  IdlePolicy idle_policy(waiting);
  look(idle_policy, 100);
  std::uint64_t signals = 0;
  const auto sleeps = [&](int times) {
    std::vector<bool> naps;
    for (int i = 0; i < times; ++i) {
      naps.push_back(idle_policy.sleeps(signals));
      idle_policy.wakes(++signals);
    }
    return naps;
  };
  const std::vector<bool> expected{false, false, false, false, true, false, true, false, true};
  EXPECT_EQ(sleeps(9), expected);
  ASSERT_TRUE(idle_policy.measures());
  idle_policy.worked(short_task);
  EXPECT_EQ(sleeps(2), (std::vector<bool>{false, true}));
  idle_policy.worked(long_task);
  EXPECT_EQ(sleeps(9), expected);
}

// IDP2: as a worker that looks for messages every now and then.
TEST(AsksOfAnIdleWorker, CountsNoSleepThatEndsByItself) {
  IdlePolicy idle_policy(waiting);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(idle_policy.sleeps(7)) << i;
    idle_policy.wakes(7);
  }
}

// Until it wants to sleep.
std::uint32_t steps_of(IdlePolicy& idle_policy) {
  std::uint32_t steps = 0;
  for (; !idle_policy.wants_sleep(); ++steps) idle_policy.step();
  return steps;
}
// High from now on for an hour.
void raise(YieldCost& cost) {
  const auto now = YieldCost::Clock::now();
  ASSERT_TRUE(cost.note(now, now + std::chrono::hours(1)));
}

TEST(WaitOfAnIdleWorker, IsBriefForProcessesBesideOtherPrograms) {
  YieldCost cost;
  raise(cost);
  IdlePolicy idle_policy(waiting, cost);
  idle_policy.begin_wait(For::processes);
  EXPECT_EQ(steps_of(idle_policy), waiting.polls / IdlePolicy::brief);
  EXPECT_FALSE(idle_policy.polls());
}
TEST(WaitOfAnIdleWorker, HasAtLeastAPoll) {
  YieldCost cost;
  raise(cost);
  constexpr WaitPolicy hardly{.polls = IdlePolicy::brief - 1, .yields = 30};
  IdlePolicy idle_policy(hardly, cost);
  idle_policy.begin_wait(For::processes);
  EXPECT_EQ(steps_of(idle_policy), 1u);
}
// Whatever it costs, it comes back for more polls first: machine::Waiter.
TEST(WaitOfAnIdleWorker, IsNotBriefForWorkersOfItsProcess) {
  YieldCost cost;
  raise(cost);
  IdlePolicy idle_policy(waiting, cost);
  idle_policy.begin_wait(For::workers);
  EXPECT_GE(steps_of(idle_policy), waiting.polls + waiting.yields);
}

// IDP3.
TEST(WaitOfAnIdleWorker, EndsWhenTheCostHasRisen) {
  YieldCost cost;
  IdlePolicy idle_policy(waiting, cost);
  idle_policy.begin_wait(For::processes);
  const std::uint32_t between = waiting.polls / IdlePolicy::brief;
  for (std::uint32_t i = 0; i < between; ++i) idle_policy.step();
  raise(cost);
  EXPECT_EQ(steps_of(idle_policy), between);
}
TEST(WaitOfAnIdleWorker, EndsWhenTheCostHasRisenBehindItsPolls) {
  YieldCost cost;
  IdlePolicy idle_policy(waiting, cost);
  idle_policy.begin_wait(For::processes);
  // Giving the processor away may have cost much by itself, on a loaded host.
  while (idle_policy.polls()) idle_policy.step();
  raise(cost);
  if (!idle_policy.wants_sleep()) idle_policy.step();
  EXPECT_TRUE(idle_policy.wants_sleep());
  EXPECT_FALSE(idle_policy.polls());
}

// A worker has found something, and idles again.
TEST(WaitOfAnIdleWorker, BeginsAnew) {
  YieldCost cost;
  IdlePolicy idle_policy(waiting, cost);
  EXPECT_FALSE(idle_policy.waits());
  idle_policy.begin_wait(For::processes);
  raise(cost);
  EXPECT_EQ(steps_of(idle_policy), waiting.polls / IdlePolicy::brief);
  idle_policy.end_wait();
  EXPECT_FALSE(idle_policy.waits());
  idle_policy.begin_wait(For::workers);
  EXPECT_TRUE(idle_policy.waits());
  EXPECT_TRUE(idle_policy.polls());
  EXPECT_GE(steps_of(idle_policy), waiting.polls + waiting.yields);
}

}  // namespace
}  // namespace tombolo::svp
