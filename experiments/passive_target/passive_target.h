// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `passive-target`: pairs of lock and unlock in a tight loop, without
// communication, with random targets (001 sections 6.2 and 6.3).
// Thread safety: see experiment.h.
#pragma once

#include <string>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/common/lock_schemes.h"

namespace tombolo::experiments {

// A mix of locks by the name of its series.
struct LockMix {
  std::string name;
  std::uint32_t exclusive_percent = 0;
};

const std::vector<LockMix>& lock_mixes();

// Microseconds of each pair, of all processes together; rank r on core r.
Status measure_locks(const Context& context, Recorder& recorder, std::uint32_t processes, int pairs,
                     const LockMix& mix, const LockScheme& scheme, std::vector<double>* times);

Experiment passive_target();

}  // namespace tombolo::experiments
