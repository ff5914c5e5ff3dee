// SPDX-License-Identifier: Apache-2.0
// Purpose: the cellular automaton whose processes exchange their boundary lines by RCKMPI's
// messages, the papers' baseline (000 section 4.4.5 and appendix B.3).
//
//   two-sided   receives before the boundary lines are computed, sends once they are, and a wait
//               for all after the inner lines
//   one-sided   as with the windows of shared memory, of which each ghost line has one: post, start
//               and puts once the boundary lines are computed, complete and wait after the inner
//               ones
//
// Both arrays lie in memory of the process that is cached in both levels (DCM).
//
// Thread safety: see experiment.h.
#pragma once

#include "experiments/automaton/automaton_run.h"
#include "experiments/common/experiment.h"

namespace tombolo::experiments {

enum class AutomatonMessages : std::uint8_t { two_sided, one_sided };

// One run. The memory types of the plan do not matter.
Status run_automaton_by_messages(const Context& context, const AutomatonField& field,
                                 const AutomatonPlan& plan, AutomatonMessages messages,
                                 Recorder& recorder, AutomatonOutcome* outcome);

}  // namespace tombolo::experiments
