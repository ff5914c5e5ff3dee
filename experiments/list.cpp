// SPDX-License-Identifier: Apache-2.0
#include "experiments/calibration.h"
#include "experiments/experiment.h"
#include "experiments/gats.h"

namespace tombolo::experiments {

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {
      calibration(),
      gats(),
      gats_registers(),
  };
  return all;
}

}  // namespace tombolo::experiments
