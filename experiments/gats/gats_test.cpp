// SPDX-License-Identifier: Apache-2.0
// Post, start, complete and wait: their samples, and the costs that follow from the group.
#include "experiments/gats/gats.h"

#include <set>

#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

constexpr int iterations = 12;

GatsTimes times(Gats gats, std::uint32_t targets) {
  GatsTimes all;
  NoRows rows;
  const Status status = measure_gats(test_context(), rows, gats, targets, iterations, &all);
  EXPECT_TRUE(status.ok()) << status.message();
  return all;
}

class OfGats : public ::testing::TestWithParam<Gats> {};

TEST_P(OfGats, EachTargetAndIterationIsASample) {
  constexpr std::uint32_t targets = 5;
  const GatsTimes all = times(GetParam(), targets);
  EXPECT_EQ(all.start.size(), std::size_t{iterations});
  EXPECT_EQ(all.complete.size(), std::size_t{iterations});
  EXPECT_EQ(all.post.size(), std::size_t{targets} * iterations);
  EXPECT_EQ(all.wait.size(), std::size_t{targets} * iterations);
  EXPECT_EQ(all.loops.size(), std::size_t{targets});
  EXPECT_EQ(all.modification.size(), std::size_t{targets});
}

TEST_P(OfGats, APostNeedsTheRegisterAtLeastOnce) {
  for (const double loops : times(GetParam(), 6).loops) EXPECT_GE(loops, 1);
}

TEST_P(OfGats, CompleteTakesLongerWithEachTarget) {
  double before = 0;
  for (const std::uint32_t targets : {1u, 4u, 16u}) {
    const double complete = quartiles(times(GetParam(), targets).complete).median;
    EXPECT_GT(complete, before) << targets << " targets";
    before = complete;
  }
}

TEST_P(OfGats, StartIsTheLibrarysCallAndTheConversion) {
  const scc::Timing timing(test_context().chip);
  for (const std::uint32_t targets : {1u, 8u}) {
    const double parts = microseconds(timing.library_call + Library::conversion(timing, targets));
    const Quartiles start = quartiles(times(GetParam(), targets).start);
    EXPECT_GE(start.first, parts - 1e-6);
    EXPECT_LE(start.third, parts + 0.6);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OfGats,
                         ::testing::Values(Gats::published, Gats::ours, Gats::at_once));

TEST(GatsRows, AddUpTheMediansOfBothSides) {
  Rows rows;
  rows.measure(gats(), "targets-4", test_context());
  EXPECT_DOUBLE_EQ(rows.value("origin/scosco", "4"),
                   rows.value("start", "4") + rows.value("complete", "4"));
  EXPECT_DOUBLE_EQ(rows.value("target/scosco", "4"),
                   rows.value("post", "4") + rows.value("wait", "4"));
}

TEST(GatsRows, NameOursApart) {
  Rows rows;
  rows.measure(gats_registers(), "targets-4-tombolo", test_context());
  EXPECT_GE(rows.value("acquisition-loops/tombolo", "4"), 1);
  EXPECT_EQ(rows.by_place.count({"rank-conversion", "4"}), 0u);
}

TEST(GatsRows, TellOfEachChangedChipTheAttemptsAlone) {
  Context context = test_context();
  std::vector<double> attempts;
  for (const char* chip : {"no-banks", "busy-banks", "busy-registers"}) {
    Rows rows;
    rows.measure(gats_registers(), fmt::format("targets-47-{}", chip), context);
    ASSERT_EQ(rows.by_place.size(), 1u);
    attempts.push_back(rows.value(fmt::format("acquisition-loops/{}", chip), "47"));
  }
  EXPECT_EQ(std::set<double>(attempts.begin(), attempts.end()).size(), 3u);  // of three chips
}

// Half of all others are ahead of a post in the middle, each of which has the register for longer
// than a read of it takes.
TEST(GatsTimes, PostsThatComeAtOnceQueueForTheRegister) {
  constexpr std::uint32_t targets = 24;
  const GatsTimes spread = times(Gats::published, targets);
  const GatsTimes at_once = times(Gats::at_once, targets);
  EXPECT_LT(quartiles(spread.loops).median, targets / 2);
  EXPECT_GT(quartiles(at_once.loops).median, targets / 2);
  // A post by itself holds the register for more than half of the time of its modification.
  const double half_of_all = quartiles(times(Gats::published, 1).modification).median * targets / 4;
  EXPECT_GT(quartiles(at_once.modification).median, half_of_all);
  EXPECT_LT(quartiles(spread.modification).median, half_of_all);
  Rows rows;
  rows.measure(gats_registers(), "targets-10-at-once", test_context());
  EXPECT_GT(rows.value("acquisition-loops/at-once", "10"), 5);
  EXPECT_EQ(rows.by_place.size(), 2u);  // no other row differs from the benchmark's
}

TEST(GatsMessages, TakeLongerThanSharedMemory) {
  Rows rows;
  rows.measure(gats(), "targets-10", test_context());
  rows.measure(gats(), "rckmpi-10", test_context());
  EXPECT_GT(rows.value("origin/rckmpi", "10"), 2 * rows.value("origin/scosco", "10"));
}

// The rows of a point against the samples of the same run.
TEST(GatsRows, AreTheMediansOfTheirCalls) {
  constexpr int quick_iterations = 21;
  Rows rows;
  rows.measure(gats(), "targets-4", test_context());
  GatsTimes all;
  NoRows none;
  ASSERT_TRUE(measure_gats(test_context(), none, Gats::published, 4, quick_iterations, &all).ok());
  const auto expect = [&](const char* series, const std::vector<double>& samples) {
    const Row& row = rows.at(series, "4");
    const Quartiles q = quartiles(samples);
    EXPECT_EQ(row.value, q.median) << series;
    EXPECT_EQ(row.quartile1, q.first) << series;
    EXPECT_EQ(row.quartile3, q.third) << series;
    EXPECT_EQ(row.unit, "us") << series;
  };
  expect("start", all.start);
  expect("complete", all.complete);
  expect("post", all.post);
  expect("wait", all.wait);
  Rows registers;
  registers.measure(gats_registers(), "targets-4", test_context());
  EXPECT_EQ(registers.value("acquisition-loops", "4"), quartiles(all.loops).median);
  EXPECT_EQ(registers.value("vector-modification", "4"), quartiles(all.modification).median);
  EXPECT_EQ(registers.at("acquisition-loops", "4").unit, "");
  EXPECT_EQ(registers.at("vector-modification", "4").unit, "us");
  EXPECT_DOUBLE_EQ(registers.value("rank-conversion", "4"),
                   microseconds(Library::conversion(scc::Timing(test_context().chip), 4)));
}

TEST(GatsPoints, HaveThePapersNumbersOfTargets) {
  Context context = test_context();
  context.quick = false;
  for (const bool registers : {false, true}) {
    std::set<std::string> all;
    for (const Point& point : (registers ? gats_registers() : gats()).points(context))
      all.insert(point.name);
    for (const int targets : {1, 2, 4, 8, 10, 16, 24, 31, 47}) {
      EXPECT_TRUE(all.contains(fmt::format("targets-{}", targets))) << targets;
      EXPECT_TRUE(all.contains(fmt::format("targets-{}-tombolo", targets))) << targets;
      EXPECT_EQ(all.contains(fmt::format("rckmpi-{}", targets)), !registers) << targets;
    }
    EXPECT_EQ(all.contains("targets-47-at-once"), registers);
    EXPECT_EQ(all.size(), registers ? 30u : 27u);  // three of changed chips
  }
}

// A target that posts late holds up the origin, and no other call.
TEST(GatsTimes, TheOriginWaitsForTheLastTarget) {
  const GatsTimes few = times(Gats::published, 2);
  const GatsTimes many = times(Gats::published, 12);
  EXPECT_GT(quartiles(many.complete).median, 2 * quartiles(few.complete).median);
  EXPECT_GT(quartiles(many.wait).median, quartiles(few.wait).median);
  EXPECT_LT(quartiles(many.start).median, quartiles(many.complete).median);
}

TEST(GatsMessages, AddUpBothSidesAsWell) {
  Rows rows;
  rows.measure(gats(), "rckmpi-1", test_context());
  EXPECT_GT(rows.value("origin/rckmpi", "1"), 5);
  EXPECT_GT(rows.value("target/rckmpi", "1"), 5);
  EXPECT_EQ(rows.at("origin/rckmpi", "1").unit, "us");
  // With one target both sides meet in each iteration: neither is much ahead.
  EXPECT_NEAR(rows.value("origin/rckmpi", "1"), rows.value("target/rckmpi", "1"),
              0.5 * rows.value("origin/rckmpi", "1"));
}

}  // namespace
}  // namespace tombolo::experiments
