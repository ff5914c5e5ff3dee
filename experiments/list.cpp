// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton.h"
#include "experiments/big_chips/big_chips.h"
#include "experiments/calibration/calibration.h"
#include "experiments/common/experiment.h"
#include "experiments/database/database.h"
#include "experiments/dht/dht.h"
#include "experiments/ft/ft.h"
#include "experiments/gats/gats.h"
#include "experiments/memory/memory.h"
#include "experiments/osu/osu.h"
#include "experiments/passive_target/passive_target.h"
#include "experiments/recommendations/recommendations.h"

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
