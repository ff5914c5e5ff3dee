// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `recommendations`: the gain of each feature that 000 section 4.6 asks
// for, as time on the plain chip over time on the chip that has it.
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment recommendations();

}  // namespace tombolo::experiments
