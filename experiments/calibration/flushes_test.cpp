// SPDX-License-Identifier: Apache-2.0
// Flushes of the caches: which states take longer, and the parameters that their times follow.
#include "experiments/calibration/flushes.h"

#include "experiments/calibration/calibration.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

Rows measured(const Context& context) {
  Rows rows;
  for (const char* point : {"flush-l2", "flush-l1"}) rows.measure(calibration(), point, context);
  return rows;
}

class Flushes : public ::testing::Test {
 protected:
  static const Rows& rows() {
    static const Rows all = measured(test_context());
    return all;
  }
  static double l2(const std::string& routine, const std::string& state) {
    return rows().value("l2-flush/" + routine, state);
  }
  static double l1(const std::string& instruction, const std::string& state) {
    return rows().value("l1-flush/" + instruction, state);
  }
};

TEST_F(Flushes, OfDirtyLinesWriteThemBack) {
  for (const char* routine : {"normal", "mpb", "mpb2"})
    EXPECT_GT(l2(routine, "dirty"), 1.3 * l2(routine, "clean")) << routine;
  EXPECT_GT(l1("wbinvd", "dirty"), 1.3 * l1("wbinvd", "clean"));
  EXPECT_EQ(l1("invd", "dirty"), l1("invd", "clean"));  // which drops them
}

// 002 Table 2.2, within a tenth: the load behind a line that is written back waits for it.
TEST_F(Flushes, OfDirtyLinesTakeAsLongAsInTheThesis) {
  const auto expect = [](const char* routine, double paper) {
    EXPECT_NEAR(l2(routine, "dirty"), paper, paper / 10) << routine;
  };
  expect("normal", 183.7);
  expect("mpb", 144.3);
  expect("mpb2", 155.6);
}

TEST_F(Flushes, ByTheSameBytesFindThemInTheCache) {
  EXPECT_LT(l2("normal", "flush"), l2("normal", "clean") / 3);
  EXPECT_LT(l2("mpb", "flush"), l2("mpb", "clean") / 2);
  EXPECT_NEAR(l2("mpb2", "flush"), l2("mpb2", "clean"), 1);
}

TEST_F(Flushes, ByTheBufferAreQuicker) {
  for (const char* state : {"clean", "dirty"}) EXPECT_LT(l2("mpb", state), l2("normal", state));
}

TEST_F(Flushes, OfAnEmptyFirstLevelTakeTheirParameters) {
  const scc::Parameters chip = test_context().chip;
  const auto cycles = [](scc::HalfCycles c) { return static_cast<double>(c.halves) / 2; };
  EXPECT_NEAR(l1("invd", "flush"), cycles(chip.core.system_call), 1);
  EXPECT_NEAR(l1("wbinvd", "flush"), cycles(chip.core.system_call) + cycles(chip.operations.wbinvd),
              1);
}

TEST_F(Flushes, AreMeasuredOnceForEachState) {
  EXPECT_EQ(rows().by_place.size(), 15u);
  for (const auto& [place, row] : rows().by_place) EXPECT_EQ(row.unit, "cycles") << place.first;
}

TEST(FlushesOfOtherChips, FollowTheirCaches) {
  Context half = test_context();
  half.chip.caches.l1_bytes /= 2;
  const Rows rows = measured(half);
  Rows whole = measured(test_context());
  const double empty = rows.value("l1-flush/invd", "flush");
  EXPECT_NEAR(rows.value("l1-flush/invd", "clean") - empty,
              (whole.value("l1-flush/invd", "clean") - empty) / 2, 1);
}

// By the time that the load takes to look into the caches, and a little for the line in 16 that
// leaves L1 behind that of L2.
TEST(FlushesOfOtherChips, OfDirtyLinesAreQuickerWhereTheNextLoadLooksIntoTheCachesMeanwhile) {
  Context overlapping = test_context();
  overlapping.chip.core.stalls_behind_write = false;
  Rows stalling, rows;
  stalling.measure(calibration(), "flush-l2", test_context());
  rows.measure(calibration(), "flush-l2", overlapping);
  const scc::Parameters& chip = overlapping.chip;
  const double look = static_cast<double>(chip.core.miss.halves + chip.core.l2.halves) / 2;
  for (const std::string series : {"l2-flush/normal", "l2-flush/mpb", "l2-flush/mpb2"}) {
    const double slower = stalling.value(series, "dirty") - rows.value(series, "dirty");
    EXPECT_GE(slower, look) << series;
    EXPECT_LE(slower, look * 1.1) << series;
    EXPECT_EQ(stalling.value(series, "clean"), rows.value(series, "clean")) << series;
  }
}

}  // namespace
}  // namespace tombolo::experiments
