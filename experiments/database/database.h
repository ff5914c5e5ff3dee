// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiment `database`: the cost of a centralized window database to a stencil that
// synchronizes with its neighbours (000 section 3.4.5). Thread safety: see experiment.h.
#pragma once

#include <vector>

#include "experiments/common/experiment.h"
#include "machine/place.h"
#include "simulator/kernel/identifiers.h"

namespace tombolo::experiments {

// The decomposition: the lines of a process, those it shares boundaries with, and their cores, one
// domain of a controller after the other (000 section 3.4.5).
std::uint32_t database_lines(machine::Home process, std::uint32_t processes);
std::vector<machine::Home> database_neighbours(machine::Home self, machine::Home processes);
std::vector<simulator::CoreId> database_cores(const Context& context, std::uint32_t processes);

Experiment database();

}  // namespace tombolo::experiments
