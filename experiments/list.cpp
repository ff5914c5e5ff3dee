// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton.h"
#include "experiments/big_chips.h"
#include "experiments/calibration.h"
#include "experiments/database.h"
#include "experiments/dht.h"
#include "experiments/experiment.h"
#include "experiments/ft.h"
#include "experiments/gats.h"
#include "experiments/memory.h"
#include "experiments/osu.h"
#include "experiments/passive_target.h"
#include "experiments/recommendations.h"

namespace tombolo::experiments {

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {
      calibration(),
      gats(),
      gats_registers(),
      database(),
      passive_target(),
      dht(),
      recommendations(),
      big_chips(),
      memory(),
      osu(),
      ft(),
      automaton(),
  };
  return all;
}

}  // namespace tombolo::experiments
