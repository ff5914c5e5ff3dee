// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `big-chips`: `gats` and `passive-target` unchanged on meshes of 256 and
// 1,024 cores. Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment big_chips();

}  // namespace tombolo::experiments
