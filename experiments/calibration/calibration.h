// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `calibration`: latencies of the chip's memories and instructions as
// TN-005 and Bakker (002 section 2.3) measured them.
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment calibration();

}  // namespace tombolo::experiments
