// SPDX-License-Identifier: Apache-2.0
// The winner tree and the event queue against a linear search.
#include "simulator/kernel/turn_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "simulator/kernel/event_queue.h"

namespace tombolo::simulator {
namespace {

Time at(std::int64_t n) { return Time::after_start(Duration::ticks(n)); }

TEST(TurnTree, W1TheEarliestWinsAndTheSmallestNumberAmongEquals) {
  Random random(3);
  for (std::uint32_t entrants : {1u, 2u, 3u, 5u, 48u, 49u, 64u, 1025u}) {
    TurnTree tree(entrants);
    std::vector<Time> times(entrants, Time::never());
    for (int step = 0; step < 3000; ++step) {
      if (random.one_in(100)) {
        entrants += static_cast<std::uint32_t>(random.below(3));
        times.resize(entrants, Time::never());
        tree.grow(entrants);
      }
      const auto who = static_cast<std::uint32_t>(random.below(entrants));
      const Time when =
          random.one_in(4) ? Time::never() : at(static_cast<std::int64_t>(random.below(50)));
      tree.set(who, when);
      times[who] = when;
      const auto first = std::min_element(times.begin(), times.end());
      ASSERT_EQ(tree.first().time, *first);
      if (*first != Time::never()) {
        ASSERT_EQ(tree.first().entrant, first - times.begin());
      }
      ASSERT_EQ(tree.time_of(who), when);
    }
  }
}

TEST(EventQueue, Q1EventsComeOutByTimeThenInTheOrderInWhichTheyWentIn) {
  Random random(5);
  EventQueue queue;
  struct Seen {
    Time time;
    std::uint64_t number;
  };
  std::vector<Seen> seen;
  std::uint64_t pushed = 0;
  Time now;
  for (int step = 0; step < 20000; ++step) {
    if (!random.one_in(3) && step < 15000) {
      const std::uint64_t number = pushed++;
      queue.push(now + Duration::ticks(static_cast<std::int64_t>(random.below(20))),
                 Event([&seen, number](Time t) {
                   seen.push_back({t, number});
                 }));
    } else if (queue.first() != Time::never()) {
      now = queue.first();
      queue.pop()(now);
    }
  }
  while (queue.first() != Time::never()) {
    now = queue.first();
    queue.pop()(now);
  }
  ASSERT_EQ(seen.size(), pushed);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) {
    return a.time != b.time ? a.time < b.time : a.number < b.number;
  }));
}

}  // namespace
}  // namespace tombolo::simulator
