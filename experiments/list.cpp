// SPDX-License-Identifier: Apache-2.0
#include "experiments/calibration.h"
#include "experiments/experiment.h"

namespace tombolo::experiments {

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {
      calibration(),
  };
  return all;
}

}  // namespace tombolo::experiments
