// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton.h"
#include "experiments/calibration.h"
#include "experiments/experiment.h"
#include "experiments/ft.h"
#include "experiments/memory.h"
#include "experiments/osu.h"

namespace tombolo::experiments {

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {
      calibration(),
      memory(),
      osu(),
      ft(),
      automaton(),
  };
  return all;
}

}  // namespace tombolo::experiments
