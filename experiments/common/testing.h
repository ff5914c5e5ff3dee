// SPDX-License-Identifier: Apache-2.0
// Purpose: helpers of the tests of experiments.
// Thread safety: values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

inline Context test_context(const std::string& chip = "scc") {
  Context context;
  context.quick = true;
  const Status status = scc::find_parameters(chip, &context.chip);
  EXPECT_TRUE(status.ok()) << status.message();
  return context;
}

class NoRows final : public Recorder {
 public:
  void row(const Row&) override {}
  void progress(double) override {}
  void cost(const Cost&) override {}
};

// The rows of points, by series and x.
class Rows final : public Recorder {
 public:
  void row(const Row& row) override {
    const double* number = std::get_if<double>(&row.x);
    by_place[{row.series,
              number != nullptr ? fmt::format("{}", *number) : std::get<std::string>(row.x)}] = row;
  }
  void progress(double) override {}
  void cost(const Cost& cost) override { events += cost.events; }

  // Runs the point of that name.
  void measure(const Experiment& experiment, const std::string& point, const Context& context) {
    const std::vector<Point> points = experiment.points(context);
    const auto found =
        std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.name == point; });
    ASSERT_NE(found, points.end()) << experiment.name << " has no point " << point;
    const Status status = found->run(context, *this);
    ASSERT_TRUE(status.ok()) << point << ": " << status.message();
  }
  const Row& at(const std::string& series, const std::string& x) const {
    static const Row none;
    const auto found = by_place.find({series, x});
    EXPECT_NE(found, by_place.end()) << series << " at " << x << " was not measured";
    return found == by_place.end() ? none : found->second;
  }
  double value(const std::string& series, const std::string& x) const {
    return at(series, x).value;
  }

  std::map<std::pair<std::string, std::string>, Row> by_place;
  std::uint64_t events = 0;
};

// The progress that a program reports.
class Told final : public Recorder {
 public:
  void row(const Row&) override {}
  void progress(double fraction) override { fractions.push_back(fraction); }
  void cost(const Cost&) override {}

  // It rises, by a hundredth at least, and ends with all.
  void expect_all() const {
    EXPECT_GE(fractions.size(), 3u);
    for (std::size_t i = 1; i < fractions.size(); ++i)
      EXPECT_GE(fractions[i], fractions[i - 1] + 0.01);
    EXPECT_NEAR(fractions.empty() ? 0 : fractions.back(), 1, 0.02);
  }

  std::vector<double> fractions;
};

}  // namespace tombolo::experiments
