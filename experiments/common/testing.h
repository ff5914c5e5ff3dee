// SPDX-License-Identifier: Apache-2.0
// Purpose: helpers of the tests of experiments.
// Thread safety: values.
#pragma once

#include <gtest/gtest.h>

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
