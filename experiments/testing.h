// SPDX-License-Identifier: Apache-2.0
// Purpose: what the tests of experiments have in common.
// Thread safety: values.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "experiments/experiment.h"

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

}  // namespace tombolo::experiments
