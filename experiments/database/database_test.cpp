// SPDX-License-Identifier: Apache-2.0
// The stencil with its synchronization at one controller, at all, or without any.
#include "experiments/database/database.h"

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

}  // namespace
}  // namespace tombolo::experiments
