// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiments `automaton` and `automaton-steps`: strong scaling of a cellular
// automaton whose processes put their boundary lines into their neighbours' windows, or send them
// (000 section 4.4.5). The first has the paper's field and few steps, the second a narrower one and
// many.
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment automaton();
Experiment automaton_steps();

}  // namespace tombolo::experiments
