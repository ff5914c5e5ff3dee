// SPDX-License-Identifier: Apache-2.0
// Purpose: how long a core polls before it gives the processor away.
#include "machine/waiting.h"

#include <gtest/gtest.h>

namespace tombolo::machine {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr YieldCost::Clock::time_point start{hours(1)};

class CountingHook final : public IdleHook {
 public:
  int calls = 0;
  Status idle() override {
    ++calls;
    return {};
  }
};

// Steps up to the first yield, which makes this waiter want to sleep.
int steps_to_yield(std::uint32_t polls, YieldCost& cost, IdleHook* hook = nullptr) {
  const WaitPolicy policy{.polls = polls, .yields = 1, .yields_per_idle = 2};
  Waiter waiter(policy, hook, cost);
  int steps = 0;
  while (!waiter.wants_sleep()) {
    EXPECT_TRUE(waiter.step().ok());
    ++steps;
  }
  return steps;
}

TEST(YieldCost, IsHighForSomeTimeAfterALongYield) {
  YieldCost cost;
  EXPECT_FALSE(cost.is_high(start));
  EXPECT_FALSE(cost.note(start, start + microseconds(99)));
  EXPECT_FALSE(cost.is_high(start + microseconds(99)));
  EXPECT_TRUE(cost.note(start, start + microseconds(100)));
  EXPECT_TRUE(cost.is_high(start + microseconds(100) + milliseconds(199)));
  EXPECT_FALSE(cost.is_high(start + microseconds(100) + milliseconds(200)));
}

TEST(Waiter, YieldsAfterItsPolls) {
  for (const std::uint32_t polls : {20u, 1000u}) {
    YieldCost cost;
    EXPECT_EQ(steps_to_yield(polls, cost), static_cast<int>(polls) + 1);
  }
}

TEST(Waiter, PollsForAboutATimeSliceWhereYieldsCostMuch) {
  YieldCost cost;
  cost.note(YieldCost::Clock::now(), YieldCost::Clock::now() + hours(1));
  CountingHook hook;
  EXPECT_EQ(steps_to_yield(1000, cost, &hook), 1000 + 32 * 901 + 1);
  EXPECT_EQ(hook.calls, 32) << "the host MPI goes on meanwhile";
}

TEST(Waiter, YieldsAtOnceWhereCoresShareAProcessorWhateverItCosts) {
  YieldCost cost;
  cost.note(YieldCost::Clock::now(), YieldCost::Clock::now() + hours(1));
  EXPECT_EQ(steps_to_yield(WaitPolicy::for_host(3, 2).polls, cost), 21);
  EXPECT_EQ(steps_to_yield(WaitPolicy::for_host(2, 2).polls, cost), 2000 + 32 * 1901 + 1);
}

}  // namespace
}  // namespace tombolo::machine
