// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `automaton`: strong scaling of a cellular automaton whose processes put
// their boundary lines into their neighbours' windows (000 section 4.4.5).
// Thread safety: see experiment.h.
#pragma once

#include "experiments/automaton_field.h"
#include "experiments/experiment.h"

namespace tombolo::experiments {

Experiment automaton();

struct AutomatonPlan {
  scc::MemoryType own = scc::MemoryType::dcm;  // how the own windows are mapped
  bool serial = false;                         // one process without windows
  int warm_up = 1;
  int steps = 2;  // after those
};

struct AutomatonOutcome {
  simulator::Duration longest;                   // steps after the warm-up
  std::vector<simulator::Duration> computation;  // by process
  std::vector<simulator::Duration> exchange;
  std::uint64_t wrong_cells = 0;
};

// One run, with the coherence operations of the papers' prototype whatever the memory type.
Status run_automaton(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
                     Recorder& recorder, AutomatonOutcome* outcome);

}  // namespace tombolo::experiments
