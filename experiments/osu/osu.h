// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `osu`: latency and bandwidth of puts with their synchronization between
// two neighbouring cores, as the OSU micro-benchmarks measure them (000 sections 4.1.2 and 4.4.3).
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment osu();

}  // namespace tombolo::experiments
