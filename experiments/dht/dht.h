// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `dht`: the cost to the writer of a distributed hash table of readers that
// wait for its lock (001 section 6.4).
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment dht();

}  // namespace tombolo::experiments
