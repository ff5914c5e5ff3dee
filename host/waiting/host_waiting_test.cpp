// SPDX-License-Identifier: Apache-2.0
// Purpose: how a core of this host waits and pauses: its looks, their order, and when it lets
// others go on.
#include "host/waiting/host_waiting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tombolo::host {
namespace {

using Clock = std::chrono::steady_clock;
using machine::WaitPolicy;
constexpr std::uint32_t minute_us = 60'000'000;

// Counts its calls, and fails from one of them on.
class Hook final : public machine::IdleHook {
 public:
  explicit Hook(int fails_at = -1) : fails_at_(fails_at) {}
  Status idle() override {
    ++calls;
    if (calls == fails_at_) return Status::process_failed(4, "rank 4 died");
    return {};
  }
  int calls = 0;

 private:
  int fails_at_;
};

TEST(Wait, ForWhatIsThereLooksOnce) {
  Doorbell bell{};
  Hook hook;
  int looks = 0;
  EXPECT_TRUE(wait({}, &hook, bell, [&] { return ++looks == 1; }).ok());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(hook.calls, 0);
}

TEST(Wait, PollsThenYieldsThenSleeps) {
  const WaitPolicy policy{.polls = 5, .yields = 6, .yields_per_idle = 3, .sleep_us_max = 10};
  Doorbell bell{};
  Hook hook;
  int looks = 0;
  int calls_at_first_sleep = -1;
  int looks_at_first_sleep = -1;
  const Status waited = wait(policy, &hook, bell, [&] {
    ++looks;
    if (bell.sleepers != 0 && calls_at_first_sleep < 0) {
      calls_at_first_sleep = hook.calls;
      looks_at_first_sleep = looks;
    }
    return looks >= 40;
  });
  EXPECT_TRUE(waited.ok());
  EXPECT_EQ(calls_at_first_sleep, 2) << "one call in three of six yields";
  EXPECT_EQ(looks_at_first_sleep, 1 + 5 + 6 + 1 + 1) << "after each step one, and in the sleep one";
  EXPECT_GT(hook.calls, 10) << "after each sleep as well (W1)";
  EXPECT_EQ(bell.sleepers, 0u);
}

TEST(Wait, EndsWithTheFaultOfTheHook) {
  const WaitPolicy policy{.polls = 1, .yields = 1, .yields_per_idle = 1, .sleep_us_max = 10};
  Doorbell bell{};
  for (const int fails_at : {1, 2}) {  // of a yield, of a sleep
    Hook hook(fails_at);
    const Status waited = wait(policy, &hook, bell, [] { return false; });
    EXPECT_EQ(waited.code(), Code::process_failed);
    EXPECT_EQ(waited.rank(), 4);
    EXPECT_EQ(hook.calls, fails_at);
  }
}

TEST(Wait, WhatADeadPeerDidBeforeCounts) {
  const WaitPolicy policy{.polls = 0, .yields = 10, .yields_per_idle = 1, .sleep_us_max = 10};
  Doorbell bell{};
  Hook hook(1);
  EXPECT_TRUE(wait(policy, &hook, bell, [&] { return hook.calls == 1; }).ok());
}

TEST(Wait, NeedsNoHook) {
  const WaitPolicy policy{.polls = 1, .yields = 1, .yields_per_idle = 1, .sleep_us_max = 10};
  Doorbell bell{};
  int looks = 0;
  EXPECT_TRUE(wait(policy, nullptr, bell, [&] { return ++looks >= 9; }).ok());
}

TEST(Wait, IsWokenByItsBell) {
  const WaitPolicy policy{.polls = 0, .yields = 1, .yields_per_idle = 1, .sleep_us_max = minute_us};
  Doorbell bell{};
  std::atomic<bool> ready = false;
  const auto start = Clock::now();
  std::thread waiter([&] { (void)wait(policy, nullptr, bell, [&] { return ready.load(); }).ok(); });
  while (bell.sleepers == 0) std::this_thread::yield();
  ready = true;
  bell.ring();
  waiter.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
}

TEST(Pause, TakesItsTime) {
  const WaitPolicy alone{.polls = 2000};
  const WaitPolicy crowded{.polls = 20};
  for (const std::uint64_t nanoseconds : {1'000u, 20'000u, 49'999u, 50'000u, 2'000'000u}) {
    const auto start = Clock::now();
    EXPECT_TRUE(pause(alone, nullptr, nanoseconds).ok());
    EXPECT_GE(Clock::now() - start, std::chrono::nanoseconds(nanoseconds));
  }
  const auto start = Clock::now();
  EXPECT_TRUE(pause(crowded, nullptr, 2'000'000).ok());
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(2)) << "the rest is slept";
}

TEST(Pause, InACrowdGivesTheProcessorAwayAndDoesNotPoll) {
  // A thousand pauses of 40 us each would take 40 ms of polling.
  const WaitPolicy crowded{.polls = 999};
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pause(crowded, nullptr, 40'000).ok());
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const auto used_ns =
      (after.tv_sec - before.tv_sec) * 1'000'000'000L + after.tv_nsec - before.tv_nsec;
  EXPECT_LT(used_ns, 30'000'000);
}

TEST(Pause, LongEnoughLetsOthersGoOn) {
  for (const std::uint32_t polls : {20u, 2000u}) {
    const WaitPolicy policy{.polls = polls};
    Hook hook;
    EXPECT_TRUE(pause(policy, &hook, 3'999).ok());
    EXPECT_EQ(hook.calls, 0);
    EXPECT_TRUE(pause(policy, &hook, 4'000).ok());
    EXPECT_EQ(hook.calls, 1);
    EXPECT_TRUE(pause(policy, &hook, 60'000).ok());
    EXPECT_EQ(hook.calls, 2);
    Hook failing(1);
    EXPECT_EQ(pause(policy, &failing, 4'000).rank(), 4);
  }
}

TEST(WaitPolicy, HardlyPollsWhereThereAreMoreCoresThanProcessors) {
  EXPECT_EQ(WaitPolicy::for_host(2, 2).polls, WaitPolicy{}.polls);
  EXPECT_LT(WaitPolicy::for_host(3, 2).polls, 1000u) << "pause() takes that for a crowd";
  EXPECT_GE(WaitPolicy::for_host(1, 2).polls, 1000u);
}

}  // namespace
}  // namespace tombolo::host
