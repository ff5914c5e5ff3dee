// SPDX-License-Identifier: Apache-2.0
// Purpose: a sleeper wakes when it is rung, sleeps no longer than it may, and not at all where it
// need not (D1).
#include "host/waiting/doorbell.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace tombolo::host {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr std::uint32_t minute_us = 60'000'000;  // a test that sleeps it out has failed

void wait_for_sleepers(const Doorbell& bell, std::uint32_t n) {
  while (bell.sleepers.load() < n) std::this_thread::yield();
}

TEST(Doorbell, LeavesAtOnceWhereItsReasonIsThere) {
  Doorbell bell{};
  const auto start = Clock::now();
  bell.sleep(minute_us, [] { return true; });
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(bell.sleepers, 0u);
}

TEST(Doorbell, SleepsNoLongerThanItMayAndHardlyLess) {
  Doorbell bell{};
  for (const std::uint32_t microseconds : {20'000u, 1'010'000u}) {
    const auto start = Clock::now();
    bell.sleep(microseconds, [] { return false; });
    const auto slept = Clock::now() - start;
    EXPECT_GE(slept, std::chrono::microseconds(microseconds)) << "a second and a part of one";
    EXPECT_LT(slept, std::chrono::microseconds(microseconds) + std::chrono::seconds(10));
    EXPECT_EQ(bell.sleepers, 0u);
  }
}

TEST(Doorbell, IsSeenByRingersBeforeTheReasonIsLookedFor) {
  Doorbell bell{};
  std::uint32_t announced = 0;
  bell.sleep(minute_us, [&] {
    announced = bell.sleepers;
    return true;
  });
  EXPECT_EQ(announced, 1u) << "else a ring between the look and the sleep is lost";
}

TEST(Doorbell, ARingBetweenTheLookAndTheSleepIsNotSleptThrough) {
  Doorbell bell{};
  const auto start = Clock::now();
  bell.sleep(minute_us, [&] {
    bell.ring();
    return false;
  });
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
}

TEST(Doorbell, IsSilentWhereNobodySleeps) {
  Doorbell bell{};
  bell.ring();
  EXPECT_EQ(bell.rings, 0u) << "a ring writes only where it is heard";
}

TEST(Doorbell, WakesAllSleepers) {
  Doorbell bell{};
  std::atomic<bool> ready = false;
  std::atomic<int> woken = 0;
  std::vector<std::thread> sleepers;
  const auto start = Clock::now();
  for (int i = 0; i < 3; ++i)
    sleepers.emplace_back([&] {
      bell.sleep(minute_us, [&] { return ready.load(); });
      ++woken;
    });
  wait_for_sleepers(bell, 3);
  // Most sleep by now. One that does not yet sees that the count of rings has changed.
  std::this_thread::sleep_for(milliseconds(20));
  ready = true;
  bell.ring();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(woken, 3);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(bell.sleepers, 0u);
}

TEST(Doorbell, IsHeardInAnotherProcess) {
  void* const shared =
      mmap(nullptr, sizeof(Doorbell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const bell = new (shared) Doorbell{};
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    bell->sleep(minute_us, [] { return false; });
    _exit(0);
  }
  wait_for_sleepers(*bell, 1);
  bell->ring();
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  munmap(shared, sizeof(Doorbell));
}

}  // namespace
}  // namespace tombolo::host
