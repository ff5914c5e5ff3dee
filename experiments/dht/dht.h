// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `dht`: the cost to the writer of a distributed hash table of readers that
// wait for its lock (001 section 6.4).
// Thread safety: see experiment.h.
#pragma once

#include <string>
#include <vector>

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

// The readers beside the writer, which is on core 0, by the name of their series.
struct DhtReaders {
  std::string name;
  std::vector<std::uint32_t> cores;
};

// Close: in the domain of the writer's controller; distant: in another.
std::vector<DhtReaders> dht_readers();

Experiment dht();

}  // namespace tombolo::experiments
