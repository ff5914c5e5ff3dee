// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `database`: the cost of a centralized window database to a stencil that
// synchronizes with its neighbours (000 section 3.4.5). Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment database();

}  // namespace tombolo::experiments
