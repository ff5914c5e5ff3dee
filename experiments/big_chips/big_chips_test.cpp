// SPDX-License-Identifier: Apache-2.0
// Larger chips: points for the processes that each has room for, and rows of the chip that they
// name.
#include "experiments/big_chips/big_chips.h"

#include <set>

#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "experiments/gats/gats.h"
#include "experiments/passive_target/passive_target.h"

namespace tombolo::experiments {
namespace {

std::set<std::string> points(bool quick) {
  Context context = test_context();
  context.quick = quick;
  std::set<std::string> all;
  for (const Point& point : big_chips().points(context)) all.insert(point.name);
  return all;
}

TEST(BigChips, HaveAsManyCoresAsTheirSeriesSays) {
  for (const auto& [name, cores] :
       {std::pair{"scc", 48u}, {"mesh-16x8", 256u}, {"mesh-32x16", 1024u}}) {
    scc::Parameters chip;
    ASSERT_TRUE(scc::find_parameters(name, &chip).ok());
    EXPECT_EQ(chip.cores(), cores) << name;
  }
}

// An origin and all others of the chip as targets at most.
TEST(BigChips, AreMeasuredUpToAllTheirCores) {
  const std::set<std::string> all = points(false);
  for (const char* name :
       {"gats-48-47", "gats-scosco-48-47", "gats-256-255", "gats-scosco-256-255", "gats-1024-1023",
        "gats-scosco-1024-1023", "shared-gbh-256-256", "mixed-mcs-wp-1024-1024",
        "exclusive-tombolo-writer-preference-1024-1024", "exclusive-gbh-back-off-256-16"})
    EXPECT_TRUE(all.contains(name)) << name;
  EXPECT_EQ(all.count("gats-48-48"), 0u);
  EXPECT_EQ(all.count("gats-256-256"), 0u);
  EXPECT_EQ(all.count("shared-gbh-48-48"), 0u);  // passive-target's
  EXPECT_EQ(all.size(), 2u * (4 + 5 + 6) + 3 * 4 * (3 + 4));
}

TEST(BigChips, GatsRowsAreOfTheirAlgorithmAndChip) {
  Context there = test_context();
  ASSERT_TRUE(scc::find_parameters("mesh-16x8", &there.chip).ok());
  for (const Gats gats : {Gats::published, Gats::ours}) {
    const bool published = gats == Gats::published;
    Rows rows;
    rows.measure(big_chips(), published ? "gats-scosco-256-4" : "gats-256-4", test_context());
    GatsTimes times;
    NoRows none;
    ASSERT_TRUE(measure_gats(there, none, gats, 4, 5, &times).ok());
    const std::string by = published ? "scosco/256" : "256";
    const double origin = quartiles(times.start).median + quartiles(times.complete).median;
    EXPECT_DOUBLE_EQ(rows.value("origin/" + by, "4"), origin);
    EXPECT_EQ(rows.value("post/" + by, "4"), quartiles(times.post).median);
    EXPECT_EQ(rows.at("post/" + by, "4").unit, "us");
  }
}

TEST(BigChips, LockRowsAreOfTheirSchemeAndChip) {
  Context there = test_context();
  ASSERT_TRUE(scc::find_parameters("mesh-16x8", &there.chip).ok());
  Rows rows;
  rows.measure(big_chips(), "mixed-mcs-wp-256-16", test_context());
  std::vector<double> times;
  NoRows none;
  ASSERT_TRUE(measure_locks(there, none, 16, 10, {"mixed", 50}, mcs_wp(), &times).ok());
  const Row& row = rows.at("mixed/mcs-wp/256", "16");
  EXPECT_EQ(row.value, quartiles(times).median);
  ASSERT_TRUE(row.chip);
  EXPECT_EQ(row.chip->name, "mesh-16x8");
}

TEST(BigChips, AreComparedWithTheSccAlone) {
  Rows rows;
  const Context context = test_context("mesh-8x8");
  for (const Point& point : big_chips().points(context)) {
    if (point.name != "gats-256-4" && point.name != "shared-gbh-256-16") continue;
    EXPECT_EQ(point.run(context, rows).code(), Code::bad_configuration) << point.name;
  }
  EXPECT_TRUE(rows.by_place.empty());
}

}  // namespace
}  // namespace tombolo::experiments
