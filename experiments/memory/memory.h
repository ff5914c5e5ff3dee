// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `memory`: bandwidth of loads and stores by memory type (000 section
// 4.4.2), latency by tile and bandwidth of many cores together (002 section 4.3), copy cores (002
// section 4.8).
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment memory();

}  // namespace tombolo::experiments
