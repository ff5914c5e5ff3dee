// SPDX-License-Identifier: Apache-2.0
// Post, start, complete and wait: their samples, and the costs that follow from the group.
#include "experiments/gats/gats.h"

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

INSTANTIATE_TEST_SUITE_P(Both, OfGats, ::testing::Values(Gats::published, Gats::ours));

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

TEST(GatsMessages, TakeLongerThanSharedMemory) {
  Rows rows;
  rows.measure(gats(), "targets-10", test_context());
  rows.measure(gats(), "rckmpi-10", test_context());
  EXPECT_GT(rows.value("origin/rckmpi", "10"), 2 * rows.value("origin/scosco", "10"));
}

}  // namespace
}  // namespace tombolo::experiments
