// SPDX-License-Identifier: Apache-2.0
// Purpose: the cellular automaton whose processes put their boundary lines into their neighbours'
// windows (000 section 4.4.5 and appendix B.3.2).
//
//   as the prototype   a window for each ghost line of each array, and so two epochs in a step
//   else               our window, and one epoch for both lines
//
// Thread safety: see experiment.h.
#pragma once

#include "experiments/automaton/automaton_run.h"
#include "experiments/common/experiment.h"

namespace tombolo::experiments {

// Bytes of the host that a run takes.
std::uint64_t automaton_memory(const AutomatonField& field);

// One run over windows.
Status run_automaton(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
                     Recorder& recorder, AutomatonOutcome* outcome);

}  // namespace tombolo::experiments
