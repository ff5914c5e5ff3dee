// SPDX-License-Identifier: Apache-2.0
// Ticks, clocks and how times are written.
#include "simulator/kernel/time.h"

#include <gtest/gtest.h>

namespace tombolo::simulator {
namespace {

TEST(Time, CyclesOfBothClocksOfTheChipAreWholeTicks) {
  EXPECT_EQ(Clock::megahertz(533).cycles(533'000'000), Duration::seconds(1));
  EXPECT_EQ(Clock::megahertz(800).cycles(800'000'000), Duration::seconds(1));
  EXPECT_EQ(Clock::megahertz(533).period().in_ticks(), 840'000);
  EXPECT_EQ(Clock::megahertz(800).period().in_ticks(), 559'650);
}

TEST(Time, EveryDivisorOfSixteenHundredMegahertzIsExact) {
  for (std::int64_t n = 1; n <= 64; ++n) {
    Clock clock = Clock::megahertz(1);
    ASSERT_TRUE(Clock::make(1'600'000'000, n, &clock).ok()) << n;
    EXPECT_EQ(clock.cycles(1'600'000'000), Duration::seconds(1) * n);
  }
}

TEST(Time, EveryListedFrequencyIsExact) {
  for (std::int64_t megahertz : {100,  200,  300,  400,  500,  600,  700,  800,  1000, 1066, 1200,
                                 1250, 1400, 1500, 1600, 2000, 2132, 2400, 2500, 2800, 3000}) {
    Clock clock = Clock::megahertz(1);
    EXPECT_TRUE(Clock::make(megahertz * 1'000'000, 1, &clock).ok()) << megahertz;
  }
}

TEST(Time, AClockThatIsNotExactIsRefusedWithTheReason) {
  Clock clock = Clock::megahertz(1);
  const Status s = Clock::make(1'733'000'000, 1, &clock);
  EXPECT_EQ(s.code(), Code::bad_configuration);
  EXPECT_NE(s.message().find("1733000000/1 Hz"), std::string::npos) << s.message();
  EXPECT_FALSE(Clock::make(0, 1, &clock).ok());
  EXPECT_FALSE(Clock::make(1, 0, &clock).ok());
  EXPECT_FALSE(Clock::make(1, 2, &clock).ok());
}

TEST(Time, AClockFindsItsNextEdgeAndCountsWholeCycles) {
  const Clock mesh = Clock::megahertz(800);
  const Time edge = Time() + mesh.cycles(3);
  EXPECT_EQ(mesh.next_edge(edge), edge);
  EXPECT_EQ(mesh.next_edge(edge + Duration::ticks(1)), edge + mesh.period());
  EXPECT_EQ(mesh.whole_cycles(mesh.cycles(4) - Duration::ticks(1)), 3);
}

TEST(Time, IsWrittenInMicroseconds) {
  EXPECT_EQ(to_string(Time() + Duration::nanoseconds(12'345)), "12.345000 us");
  EXPECT_EQ(to_string(Clock::megahertz(533).period()), "0.001876 us");
  EXPECT_EQ(to_string(Time::after_start(Duration::seconds(20'000))), "20000000000.000000 us");
  EXPECT_EQ(to_string(Duration::nanoseconds(-1)), "-0.001000 us");
  EXPECT_EQ(to_string(Time::never()), "never");
}

}  // namespace
}  // namespace tombolo::simulator
