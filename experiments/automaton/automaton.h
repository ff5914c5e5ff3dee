// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `automaton`: strong scaling of a cellular automaton whose processes put
// their boundary lines into their neighbours' windows, or send them (000 section 4.4.5).
// Thread safety: see experiment.h.
#pragma once

#include "experiments/automaton/automaton_run.h"
#include "experiments/common/experiment.h"

namespace tombolo::experiments {

Experiment automaton();

// Bytes of the host that a run takes.
std::uint64_t automaton_memory(std::uint32_t processes);

// One run over windows.
Status run_automaton(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
                     Recorder& recorder, AutomatonOutcome* outcome);

}  // namespace tombolo::experiments
