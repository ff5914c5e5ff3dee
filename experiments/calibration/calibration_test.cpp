// SPDX-License-Identifier: Apache-2.0
// Purpose: the calibration against the measured rows: each within a tenth. The numbers are TN-005's
// and those of Table 2.1 of Bakker's thesis (calibration.toml).
// Thread safety: -
#include "experiments/calibration/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tombolo::experiments {
namespace {

class Collector final : public Recorder {
 public:
  void row(const Row& row) override {
    const double* x = std::get_if<double>(&row.x);
    values[{row.series, x != nullptr ? *x : 0}] = row.value;
  }
  void progress(double) override {}
  void cost(const Cost&) override {}
  std::map<std::pair<std::string, double>, double> values;
};

class CalibrationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Context context{.chip = {}, .seed = 1, .quick = true};
    ASSERT_TRUE(scc::find_parameters("scc", &context.chip).ok());
    for (const Point& point : calibration().points(context)) {
      const Status status = point.run(context, measured_);
      ASSERT_TRUE(status.ok()) << point.name << ": " << status.message();
    }
  }
  // Values at x = `first`, `first` + 1, ...
  void expect(const std::string& series, double first, const std::vector<double>& values) {
    for (double x = first; const double value : values) {
      ASSERT_TRUE(measured_.values.contains({series, x})) << series << " at " << x;
      const double ours = measured_.values[{series, x}];
      EXPECT_LE(std::abs(ours - value), value / 10) << series << " at " << x << ": " << ours;
      x += 1;
    }
  }

  Collector measured_;
};

TEST_F(CalibrationTest, MeetsTheMeasuredRows) {
  expect("mpb-local-read-word", 0, {20});
  expect("mpb-local-write-line", 0, {39});
  expect("mpb-remote-read-word", 1, {63, 69, 72, 78, 84, 90, 96, 102});
  expect("mpb-remote-write-line", 1, {84, 89, 90, 95, 101});
  expect("mpb-remote-write-line", 8, {119});
  expect("dram-read-word-uncached", 0, {97, 121, 105, 134});
  expect("dram-write-line-uncached", 0, {779, 972, 843, 1069});
  expect("dram-write-line-combined", 0, {122, 146, 134, 158});
  expect("instruction", 0, {1});
  expect("mpb-byte-read", 0,
         {60.94, 66.50, 72.49, 72.52, 80.55, 84.58, 66.50, 72.49, 72.53, 78.79, 84.55, 90.53,
          72.49, 72.53, 78.55, 84.55, 90.52, 96.53, 72.55, 78.53, 84.55, 90.52, 96.51, 102.53});
  expect("mpb-byte-write", 0,
         {60.45, 63.44, 69.45, 72.52, 78.47, 84.52, 63.73, 69.45, 72.50, 78.48, 84.52, 90.48,
          69.44, 72.50, 78.48, 84.51, 90.50, 96.49, 72.50, 78.48, 84.51, 90.48, 96.49, 102.49});
  expect("mpb-word-read", 0,
         {9.81,  10.19, 10.94, 11.32, 12.07, 12.82, 10.19, 10.94, 11.35, 12.07, 12.82, 13.56,
          10.94, 11.32, 12.07, 12.99, 13.57, 14.32, 11.32, 12.07, 12.82, 13.57, 14.32, 15.07});
  expect("mpb-word-write", 0,
         {9.83,  10.57, 11.50, 11.34, 12.08, 12.83, 10.60, 11.33, 11.34, 12.08, 12.83, 13.58,
          11.33, 11.34, 12.08, 12.83, 13.58, 14.33, 11.33, 12.08, 12.83, 13.58, 14.33, 15.08});
}

}  // namespace
}  // namespace tombolo::experiments
