// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiments `gats` and `gats-registers`: post, start, complete and wait of one
// origin and its targets, in a tight loop without communication (000 section 3.5, listing 3.5).
// Thread safety: see experiment.h.
#pragma once

#include <vector>

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

// Microseconds. Of all iterations, and of all targets together.
struct GatsTimes {
  std::vector<double> start, complete, post, wait;
  // By target, over its posts: reads of the origin's register until it was got, and the time of the
  // change of the match vector with the register around it.
  std::vector<double> loops, modification;
};

// The owner of post, start, complete and wait: the thesis's (published/match_vector_gats.h, on a
// machine that spins on registers), or those of our windows. at_once: the thesis's, but all targets
// post at the same time, as the benchmark's do not by themselves.
enum class Gats : std::uint8_t { published, ours, at_once };

// Rank 0 on core 0 is the origin, rank r on core r a target.
Status measure_gats(const Context& context, Recorder& recorder, Gats gats, std::uint32_t targets,
                    int iterations, GatsTimes* times);

Experiment gats();
Experiment gats_registers();

}  // namespace tombolo::experiments
