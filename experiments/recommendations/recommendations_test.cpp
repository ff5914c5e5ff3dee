// SPDX-License-Identifier: Apache-2.0
// The gain by each recommendation: time on the plain chip over time on the one that has it, under
// its name and with its parameters.
#include "experiments/recommendations/recommendations.h"

#include <set>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

constexpr const char* names[] = {
    "repaired",    "commit", "write-back", "invalidation", "remote-invalidation",
    "copy-engine", "all"};

double gain(const std::string& recommendation, const std::string& program) {
  Rows rows;
  rows.measure(recommendations(), recommendation + "-" + program, test_context());
  const Row& row = rows.at(recommendation, program);
  EXPECT_EQ(row.unit, "times");
  return row.value;
}

std::set<std::string> points(bool quick) {
  Context context = test_context();
  context.quick = quick;
  std::set<std::string> all;
  for (const Point& point : recommendations().points(context)) all.insert(point.name);
  return all;
}

// The target reads the data: from a chip that caches its window it does so faster, each time after
// the first.
TEST(Recommendations, ACacheableWindowIsAGain) {
  EXPECT_GT(gain("repaired", "put-4k"), 1.2);
  EXPECT_GT(gain("all", "put-4k"), 1.2);
}

// A feature that a put does not need is no gain for it, and no loss.
TEST(Recommendations, GuaranteedCommitChangesNothingForAPut) {
  EXPECT_NEAR(gain("commit", "put-4k"), 1, 0.05);
}

TEST(Recommendations, ARowHasTheParametersOfItsChip) {
  Rows rows;
  rows.measure(recommendations(), "copy-engine-put-4k", test_context());
  const Row& row = rows.at("copy-engine", "put-4k");
  ASSERT_TRUE(row.chip);
  EXPECT_EQ(row.chip->name, "scc-copy-engine");
  EXPECT_TRUE(row.chip->extensions.copy_engine);
  EXPECT_FALSE(row.chip->extensions.remote_invalidation);
}

TEST(Recommendations, EachHasAChipOfItsName) {
  for (const char* name : names) {
    scc::Parameters chip;
    const Status status = scc::find_parameters(std::string("scc-") + name, &chip);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// All are measured with puts. FT reads all of its window and never stores into it, the automaton
// copies from its window line by line: features that cannot matter to them are left out.
TEST(Recommendations, AreMeasuredWhereTheyCanMatter) {
  const std::set<std::string> all = points(false);
  for (const std::string name : names) {
    EXPECT_TRUE(all.contains(name + "-put-4k")) << name;
    EXPECT_TRUE(all.contains(name + "-put-1m")) << name;
    const bool for_ft = name != "commit" && name != "write-back";
    EXPECT_EQ(all.contains(name + "-ft-s"), for_ft) << name;
    EXPECT_EQ(all.contains(name + "-ft-w"), for_ft) << name;
    const bool for_automaton = name != "commit" && name != "copy-engine";
    EXPECT_EQ(all.contains(name + "-automaton-24"), for_automaton) << name;
  }
  EXPECT_EQ(all.size(), 7u * 2 + 5 * 2 + 5);
}

TEST(Recommendations, AreOfTheSmallProgramsWhereTimeIsShort) {
  for (const std::string& name : points(true)) {
    EXPECT_EQ(name.find("ft-w"), std::string::npos) << name;
    EXPECT_EQ(name.find("automaton"), std::string::npos) << name;
  }
}

TEST(Recommendations, AreComparedWithThePlainChipAlone) {
  Rows rows;
  const Context context = test_context("scc-repaired");
  for (const Point& point : recommendations().points(context)) {
    if (point.name != "repaired-put-4k") continue;
    const Status status = point.run(context, rows);
    EXPECT_EQ(status.code(), Code::bad_configuration);
    EXPECT_NE(status.message().find("--chip"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(rows.by_place.empty());
}

}  // namespace
}  // namespace tombolo::experiments
