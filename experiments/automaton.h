// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `automaton`: strong scaling of a cellular automaton whose processes put
// their boundary lines into their neighbours' windows (000 section 4.4.5).
// Thread safety: see experiment.h.
#pragma once

#include "experiments/experiment.h"

namespace tombolo::experiments {

Experiment automaton();

}  // namespace tombolo::experiments
