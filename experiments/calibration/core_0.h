// SPDX-License-Identifier: Apache-2.0
// Purpose: measurements of single operations: core 0 alone, in its cycles.
// Thread safety: see experiment.h.
#pragma once

#include "backends/scc/chip.h"
#include "backends/scc/cpu.h"
#include "experiments/common/measure.h"

namespace tombolo::experiments {

inline double core_cycles(const scc::Chip& chip, simulator::Duration d) {
  return static_cast<double>(d.in_ticks()) /
         static_cast<double>(chip.timing().core.period().in_ticks());
}

// Runs `body(chip, cpu)` on core 0 alone; it returns the measured time of one repetition.
template <class Body>
Status on_core_0(const Context& context, Recorder& recorder, double* cycles, Body&& body) {
  scc::Chip chip(context.chip, options_of(context));
  chip.start(simulator::CoreId(0),
             [&](scc::Cpu& cpu) { *cycles = core_cycles(chip, body(chip, cpu)); });
  const simulator::RunResult result = chip.run();
  return end_of_run(context, recorder, chip, result);
}

inline scc::View mpb_of_tile(const scc::Chip& chip, std::uint32_t tile, scc::MemoryType type) {
  return {chip.page(static_cast<std::uint32_t>(chip.parameters().layout.mpb_lut_entry) + tile),
          type};
}

}  // namespace tombolo::experiments
