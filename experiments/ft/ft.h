// SPDX-License-Identifier: Apache-2.0
// Purpose: the experiments `ft` and `ft-class-b`: the NAS parallel benchmark FT on 32 cores (000
// section 4.4.4), with the papers' memory types for the window and with RCKMPI's messages: rates,
// times by part, and whether the checksums are the published ones. Class B takes long by itself.
// Thread safety: see experiment.h.
#pragma once

#include "backends/scc/scc.h"
#include "experiments/common/experiment.h"
#include "experiments/ft/ft_solver.h"

namespace tombolo::experiments {

Experiment ft();
Experiment ft_class_b();

// How the own windows are mapped, and on which chip.
enum class FtVariant : std::uint8_t { mpbt_wt, dcm, no_erratum };

// The rows of a run of so many iterations, scaled to those of the problem.
void report_ft(Recorder& recorder, const std::string& variant, const FtClass& problem,
               int iterations, const FtResult& result);

// Bytes of the host that a run takes.
std::uint64_t ft_memory(const FtClass& problem);

// One run with puts into windows: ours, as `placement` maps them, or a variant of the experiment,
// with the papers' synchronization.
Status ft_by_windows(const Context& context, Recorder& recorder, const scc::Placement& placement,
                     const FtClass& problem, int iterations, FtResult* result);
Status ft_by_windows(const Context& context, Recorder& recorder, FtVariant variant,
                     const FtClass& problem, int iterations, FtResult* result);

}  // namespace tombolo::experiments
