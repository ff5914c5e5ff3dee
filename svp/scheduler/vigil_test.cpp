// SPDX-License-Identifier: Apache-2.0
// Purpose: tests how long an idle worker looks before it sleeps, beside other programs and without.
// Thread safety: -
#include "svp/scheduler/vigil.h"

#include <gtest/gtest.h>

namespace tombolo::svp {
namespace {

using machine::WaitPolicy;
using machine::YieldCost;
using For = Vigil::For;

constexpr WaitPolicy policy{.polls = 400, .yields = 30};

// Until it wants to sleep.
std::uint32_t steps_of(Vigil& vigil) {
  std::uint32_t steps = 0;
  for (; !vigil.wants_sleep(); ++steps) vigil.step();
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
  Vigil vigil(policy, For::processes, cost);
  EXPECT_EQ(steps_of(vigil), policy.polls / Vigil::brief);
  EXPECT_FALSE(vigil.polls());
}
TEST(WorkersVigil, HasAtLeastAPoll) {
  YieldCost cost;
  raise(cost);
  constexpr WaitPolicy hardly{.polls = Vigil::brief - 1, .yields = 30};
  Vigil vigil(hardly, For::processes, cost);
  EXPECT_EQ(steps_of(vigil), 1u);
}
// Whatever it costs, it comes back for more polls first: machine::Waiter.
TEST(WorkersVigil, IsNotBriefForWorkersOfItsProcess) {
  YieldCost cost;
  raise(cost);
  Vigil vigil(policy, For::workers, cost);
  EXPECT_GE(steps_of(vigil), policy.polls + policy.yields);
}

// VGL1.
TEST(WorkersVigil, EndsWhenTheCostHasRisen) {
  YieldCost cost;
  Vigil vigil(policy, For::processes, cost);
  const std::uint32_t between = policy.polls / Vigil::brief;
  for (std::uint32_t i = 0; i < between; ++i) vigil.step();
  raise(cost);
  EXPECT_EQ(steps_of(vigil), between);
}
TEST(WorkersVigil, EndsWhenTheCostHasRisenBehindItsPolls) {
  YieldCost cost;
  Vigil vigil(policy, For::processes, cost);
  // Giving the processor away may have cost much by itself, on a loaded host.
  while (vigil.polls()) vigil.step();
  raise(cost);
  if (!vigil.wants_sleep()) vigil.step();
  EXPECT_TRUE(vigil.wants_sleep());
  EXPECT_FALSE(vigil.polls());
}

}  // namespace
}  // namespace tombolo::svp
