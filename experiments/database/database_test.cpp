// SPDX-License-Identifier: Apache-2.0
// The stencil with its synchronization at one controller, at all, or without any.
#include "experiments/database/database.h"

#include <set>

#include "backends/scc/chip.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

class Database : public ::testing::Test {
 protected:
  double speedup(const std::string& series, const std::string& processes) {
    std::string point = series;
    std::replace(point.begin(), point.end(), '/', '-');
    rows_.measure(database(), point + "-" + processes, test_context());
    return rows_.value(series, processes);
  }
  Rows rows_;
};

TEST_F(Database, OneProcessIsNoFasterThanItself) {
  EXPECT_NEAR(speedup("none", "1"), 1, 1e-3);
  EXPECT_LE(speedup("distributed", "1"), 1.001);
}

TEST_F(Database, SynchronizationCostsSomething) {
  const double without = speedup("none", "24");
  const double with = speedup("distributed", "24");
  EXPECT_LT(with, without);
  EXPECT_GT(with, without / 2);
}

TEST_F(Database, OneControllerForAllIsTheWorstPlace) {
  EXPECT_LT(speedup("centralized/mc0", "48"), speedup("distributed", "48") / 2);
}

TEST_F(Database, HasASeriesForEachController) {
  std::size_t centralized = 0;
  for (const Point& point : database().points(test_context()))
    centralized += point.name.starts_with("centralized-mc") && point.name.ends_with("-48") ? 1 : 0;
  EXPECT_EQ(centralized, 4u);
}

// ---- The decomposition --------------------------------------------------------------------------

TEST(DatabaseLines, AreSharedOutEvenly) {
  for (const std::uint32_t processes : {1u, 2u, 6u, 7u, 24u, 48u}) {
    std::uint32_t sum = 0;
    for (std::uint32_t p = 0; p < processes; ++p) {
      const std::uint32_t lines = database_lines(p, processes);
      EXPECT_GE(lines, 1600 / processes);
      EXPECT_LE(lines, 1600 / processes + 1);
      if (p > 0) {
        EXPECT_LE(lines, database_lines(p - 1, processes));
      }
      sum += lines;
    }
    EXPECT_EQ(sum, 1600u) << processes;
  }
}

TEST(DatabaseNeighbours, AreThoseOfARing) {
  EXPECT_EQ(database_neighbours(0, 48), (std::vector<machine::Home>{1, 47}));
  EXPECT_EQ(database_neighbours(5, 48), (std::vector<machine::Home>{4, 6}));
  EXPECT_EQ(database_neighbours(47, 48), (std::vector<machine::Home>{0, 46}));
  EXPECT_EQ(database_neighbours(1, 2), (std::vector<machine::Home>{0}));
  EXPECT_EQ(database_neighbours(0, 1), (std::vector<machine::Home>{0}));
}

TEST(DatabaseCores, FillOneDomainAfterTheOther) {
  const Context context = test_context();
  const scc::Chip chip(context.chip);
  const std::vector<simulator::CoreId> all = database_cores(context, 48);
  ASSERT_EQ(all.size(), 48u);
  for (std::size_t n = 0; n < all.size(); ++n) EXPECT_EQ(chip.controller_of(all[n]), n / 12) << n;
  const std::vector<simulator::CoreId> thirteen = database_cores(context, 13);
  ASSERT_EQ(thirteen.size(), 13u);
  for (std::size_t n = 0; n < 13; ++n) EXPECT_EQ(thirteen[n], all[n]);
  EXPECT_EQ(thirteen[0], simulator::CoreId(0));
  EXPECT_EQ(thirteen[6], simulator::CoreId(12));  // the row above, of the same domain
}

TEST(DatabasePoints, HaveThePapersNumbersOfProcesses) {
  Context context = test_context();
  context.quick = false;
  std::set<std::string> all;
  for (const Point& point : database().points(context)) all.insert(point.name);
  const int processes[] = {1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48};
  for (const char* series :
       {"none", "distributed", "distributed-tombolo", "centralized-tombolo", "centralized-mc0",
        "centralized-mc1", "centralized-mc2", "centralized-mc3"})
    for (const int n : processes)
      EXPECT_TRUE(all.contains(fmt::format("{}-{}", series, n))) << series << " " << n;
  EXPECT_EQ(all.size(), 8 * std::size(processes));
}

TEST_F(Database, AQuickRunSaysWhatWasLeftOut) {
  speedup("none", "8");
  EXPECT_EQ(rows_.at("none", "8").note, "32 of 8,192 columns, 20 of 50 iterations");
  EXPECT_EQ(rows_.at("none", "8").unit, "");
}

}  // namespace
}  // namespace tombolo::experiments
