// SPDX-License-Identifier: Apache-2.0
// Purpose: the points of experiments that measure the message passing libraries: RCKMPI's series of
// gats, passive-target and osu, RCCE's and iRCCE's of memory. The experiments append them to
// theirs.
//
// Invariants: those of experiment.h. A run that polls in vain ends at a limit of virtual time.
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

std::vector<Point> rckmpi_gats_points(const Context& context);
std::vector<Point> rckmpi_passive_target_points(const Context& context);
std::vector<Point> rckmpi_osu_points(const Context& context);
std::vector<Point> rcce_memory_points(const Context& context);
std::vector<Point> rcce_mapping_points(const Context& context);

}  // namespace tombolo::experiments
