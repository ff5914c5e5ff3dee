// SPDX-License-Identifier: Apache-2.0
// Latency and bandwidth of puts and messages between two cores.
#include "experiments/osu/osu.h"

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

class Osu : public ::testing::Test {
 protected:
  double latency(const std::string& by, const std::string& bytes) {
    return measured("latency", by, bytes);
  }
  double bandwidth(const std::string& by, const std::string& bytes) {
    return measured("bandwidth", by, bytes);
  }
  Rows rows_;

 private:
  // Points of messages are named the other way round.
  double measured(const std::string& kind, const std::string& by, const std::string& bytes) {
    const bool messages = by.starts_with("rckmpi-");
    const std::string point = messages ? fmt::format("rckmpi-{}-{}-{}", kind, by.substr(7), bytes)
                                       : fmt::format("{}-{}-{}", by, kind, bytes);
    rows_.measure(osu(), point, test_context());
    return rows_.value(kind + "/" + by, bytes);
  }
};

TEST_F(Osu, APutOfMoreBytesTakesLongerAndHasMoreBandwidth) {
  for (const char* by : {"scosco", "tombolo", "rckmpi-one-sided", "rckmpi-two-sided"}) {
    EXPECT_LT(latency(by, "1"), latency(by, "4096")) << by;
    EXPECT_LT(bandwidth(by, "16"), bandwidth(by, "4096")) << by;
  }
}

TEST_F(Osu, AnEpochOfAPutTakesLongerThanAMessageOfAByte) {
  EXPECT_GT(latency("scosco", "1"), latency("rckmpi-two-sided", "1"));
  EXPECT_GT(latency("rckmpi-one-sided", "1"), latency("scosco", "1"));
}

// A line of 32 bytes takes at least the trip to the controller, and puts wait for each.
TEST_F(Osu, NoPutIsFasterThanItsLines) {
  const scc::Parameters chip = test_context().chip;
  const double line_us = static_cast<double>(chip.path.dram.halves) / 2 /
                         static_cast<double>(chip.clocks.core_megahertz);
  EXPECT_LT(bandwidth("scosco", "65536"), 32 / line_us);
}

TEST_F(Osu, OurSynchronizationIsNoSlower) {
  EXPECT_LE(latency("tombolo", "1"), latency("scosco", "1"));
}

}  // namespace
}  // namespace tombolo::experiments
