// SPDX-License-Identifier: Apache-2.0
// Purpose: tests how long an idle worker looks before it sleeps, beside other programs and without.
// Thread safety: -
#include "svp/scheduler/idle_wait.h"

#include <gtest/gtest.h>

namespace tombolo::svp {
namespace {

using machine::WaitPolicy;
using machine::YieldCost;
using For = IdleWait::For;

constexpr WaitPolicy policy{.polls = 400, .yields = 30};

// Until it wants to sleep.
std::uint32_t steps_of(IdleWait& idle_wait) {
  std::uint32_t steps = 0;
  for (; !idle_wait.wants_sleep(); ++steps) idle_wait.step();
  return steps;
}
// High from now on for an hour.
void raise(YieldCost& cost) {
  const auto now = YieldCost::Clock::now();
  ASSERT_TRUE(cost.note(now, now + std::chrono::hours(1)));
}

TEST(WorkersVigil, IsBriefForProcessesBesideOtherPrograms) {
  YieldCost cost;
  raise(cost);
  IdleWait idle_wait(policy, For::processes, cost);
  EXPECT_EQ(steps_of(idle_wait), policy.polls / IdleWait::brief);
  EXPECT_FALSE(idle_wait.polls());
}
TEST(WorkersVigil, HasAtLeastAPoll) {
  YieldCost cost;
  raise(cost);
  constexpr WaitPolicy hardly{.polls = IdleWait::brief - 1, .yields = 30};
  IdleWait idle_wait(hardly, For::processes, cost);
  EXPECT_EQ(steps_of(idle_wait), 1u);
}
// Whatever it costs, it comes back for more polls first: machine::Waiter.
TEST(WorkersVigil, IsNotBriefForWorkersOfItsProcess) {
  YieldCost cost;
  raise(cost);
  IdleWait idle_wait(policy, For::workers, cost);
  EXPECT_GE(steps_of(idle_wait), policy.polls + policy.yields);
}

// VGL1.
TEST(WorkersVigil, EndsWhenTheCostHasRisen) {
  YieldCost cost;
  IdleWait idle_wait(policy, For::processes, cost);
  const std::uint32_t between = policy.polls / IdleWait::brief;
  for (std::uint32_t i = 0; i < between; ++i) idle_wait.step();
  raise(cost);
  EXPECT_EQ(steps_of(idle_wait), between);
}
TEST(WorkersVigil, EndsWhenTheCostHasRisenBehindItsPolls) {
  YieldCost cost;
  IdleWait idle_wait(policy, For::processes, cost);
  // Giving the processor away may have cost much by itself, on a loaded host.
  while (idle_wait.polls()) idle_wait.step();
  raise(cost);
  if (!idle_wait.wants_sleep()) idle_wait.step();
  EXPECT_TRUE(idle_wait.wants_sleep());
  EXPECT_FALSE(idle_wait.polls());
}

}  // namespace
}  // namespace tombolo::svp
