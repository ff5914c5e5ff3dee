// SPDX-License-Identifier: Apache-2.0
// Medians and quartiles, and a run whose failure is the point's.
#include "experiments/common/measure.h"

#include "base/random.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

TEST(Quartiles, AreSamplesAndTheLowerBetweenTwo) {
  const auto check = [](const std::vector<double>& samples, double first, double median,
                        double third) {
    const Quartiles q = quartiles(samples);
    EXPECT_EQ(q.first, first);
    EXPECT_EQ(q.median, median);
    EXPECT_EQ(q.third, third);
  };
  check({7}, 7, 7, 7);
  check({2, 1}, 1, 1, 1);
  check({3, 1, 2}, 1, 2, 2);
  check({5, 1, 4, 2, 3}, 2, 3, 4);
  check({1, 1, 1, 9}, 1, 1, 1);
}

// Against a definition of its own: at most half of the samples are smaller than the median, and at
// most half greater.
TEST(Quartiles, DivideRandomSamples) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> samples(1 + random.below(40));
    for (double& each : samples) each = static_cast<double>(random.below(20));
    const Quartiles q = quartiles(samples);
    const auto share = [&](auto&& which) {
      return static_cast<double>(std::count_if(samples.begin(), samples.end(), which)) /
             static_cast<double>(samples.size());
    };
    EXPECT_LE(share([&](double s) { return s < q.first; }), 0.25);
    EXPECT_LE(share([&](double s) { return s < q.median; }), 0.5);
    EXPECT_LE(share([&](double s) { return s > q.median; }), 0.5);
    EXPECT_LE(share([&](double s) { return s < q.third; }), 0.75);
    EXPECT_LE(q.first, q.median);
    EXPECT_LE(q.median, q.third);
  }
}

TEST(QuartilesDeathTest, OfNoSamplesAreAMistake) {
  EXPECT_DEATH(quartiles({}), "quartiles of no samples");
}

TEST(Rows, HaveTheMedianBetweenItsQuartiles) {
  const Row row = row_of("a", 3, {5, 1, 4, 2, 3}, "us");
  EXPECT_EQ(row.series, "a");
  EXPECT_EQ(std::get<double>(row.x), 3);
  EXPECT_EQ(row.value, 3);
  EXPECT_EQ(row.quartile1, 2);
  EXPECT_EQ(row.quartile3, 4);
  EXPECT_EQ(row.unit, "us");
}

TEST(Jobs, TellTheirCost) {
  Rows rows;
  scc::JobShape shape;
  shape.processes = 3;
  int ran = 0;
  const Status status =
      run_job(test_context(), rows, shape, [&](const scc::Attachment&, scc::Cpu& cpu) {
        cpu.compute(simulator::Duration::nanoseconds(100));
        ++ran;
      });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(ran, 3);
  EXPECT_GT(rows.events, 0u);
}

TEST(Jobs, ThatDoNotFitFailWithTheChipsSize) {
  Rows rows;
  scc::JobShape shape;
  shape.processes = 49;
  const Status status =
      run_job(test_context(), rows, shape, [](const scc::Attachment&, scc::Cpu&) { FAIL(); });
  EXPECT_EQ(status.code(), Code::bad_configuration);
  EXPECT_NE(status.message().find("48"), std::string::npos) << status.message();
}

TEST(Jobs, EndWhenTheyAreInterrupted) {
  const std::atomic<bool> interrupt{true};
  Context context = test_context();
  context.interrupt = &interrupt;
  Rows rows;
  const Status status =
      run_job(context, rows, scc::JobShape(), [](const scc::Attachment& at, scc::Cpu& cpu) {
        for (int i = 0; i < 1'000'000; ++i) cpu.test_and_set(scc::CoreId(at.self));
      });
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace tombolo::experiments
