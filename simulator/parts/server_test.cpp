// SPDX-License-Identifier: Apache-2.0
// Servers: first come, first served; the times that they report; gaps.
#include "simulator/parts/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace tombolo::simulator {
namespace {

constexpr Duration ns(std::int64_t n) { return Duration::nanoseconds(n); }
constexpr Time at_ns(std::int64_t n) { return Time::after_start(ns(n)); }

TEST(Server, V2RequestsInOrderOfArrivalAreServedFirstComeFirstServed) {
  Random random(1);
  Server server;
  Time arrival;
  Time free;
  for (int i = 0; i < 5000; ++i) {
    arrival += ns(static_cast<std::int64_t>(random.below(30)));
    const Duration service = ns(static_cast<std::int64_t>(random.below(25)));
    const Server::Slot slot = server.serve(arrival, service);
    ASSERT_EQ(slot.begin, std::max(arrival, free));
    ASSERT_EQ(slot.end, slot.begin + service);
    free = slot.end;
  }
  EXPECT_EQ(server.free_from(), free);
}

TEST(Server, ForetellsWhereItWillServe) {
  Random random(2);
  Server server;
  for (int i = 0; i < 5000; ++i) {
    const Time arrival = at_ns(i * 10 + static_cast<std::int64_t>(random.below(300)));
    const Duration service = ns(1 + static_cast<std::int64_t>(random.below(15)));
    const Time foretold = server.begin_of(arrival, service);
    ASSERT_EQ(server.serve(arrival, service).begin, foretold);
  }
}

TEST(Server, CountsWhatItServedAndForHowLong) {
  Server server;
  server.serve(at_ns(10), ns(5));
  server.serve(at_ns(12), ns(5));
  EXPECT_EQ(server.served(), 2u);
  EXPECT_EQ(server.busy(), ns(10));
  EXPECT_EQ(server.waited(), ns(3));
  EXPECT_DOUBLE_EQ(server.utilisation(at_ns(40)), 0.25);
  EXPECT_DOUBLE_EQ(Server().utilisation(Time()), 0.0);
}

TEST(Server, ARequestThatArrivesBeforeWhatIsReservedTakesAGapItFitsIn) {
  Server server;
  server.serve(at_ns(100), ns(10));
  EXPECT_EQ(server.serve(at_ns(20), ns(30)).begin, at_ns(20));
  EXPECT_EQ(server.serve(at_ns(60), ns(50)).begin, at_ns(110)) << "would overlap";
  EXPECT_EQ(server.serve(at_ns(45), ns(10)).begin, at_ns(50)) << "waits within the gap";
}

TEST(Server, V1SlotsNeverOverlapInWhateverOrderRequestsAreHandedIn) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Server server;
    std::vector<Server::Slot> slots;
    Time now;
    for (int i = 0; i < 300; ++i) {
      now += ns(static_cast<std::int64_t>(random.below(12)));
      const Time arrival = now + ns(static_cast<std::int64_t>(random.below(60)));
      const Duration service = ns(1 + static_cast<std::int64_t>(random.below(9)));
      slots.push_back(server.serve(arrival, service));
      ASSERT_GE(slots.back().begin, arrival);
      ASSERT_EQ(slots.back().end, slots.back().begin + service);
    }
    std::sort(slots.begin(), slots.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < slots.size(); ++i) {
      ASSERT_LE(slots[i - 1].end, slots[i].begin) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tombolo::simulator
