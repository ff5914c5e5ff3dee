// SPDX-License-Identifier: Apache-2.0
// Purpose: one copy from the memory of a core to that of another, divided among copy cores (002
// section 4.7, chapter 9). The caller warrants that each of both ranges lies in one row at its
// controller, as all pages of a core do, private and public; that the source has been written
// back; and that no line of the target is in a cache of its core (CC2).
// Thread safety: as Cpu.
#pragma once

#include <span>
#include <vector>

#include "experiments/common/copy_core.h"

namespace tombolo::experiments {

// A byte of a core's own memory.
struct CoreMemory {
  simulator::CoreId core{0};
  simulator::Address at;
};

// A command for each copy core that gets a part; the copy is over when all of them are done.
std::vector<Ticket> submit_divided(scc::Cpu& cpu, std::span<const simulator::CoreId> copy_cores,
                                   const CoreMemory& from, const CoreMemory& to,
                                   std::uint64_t bytes);

}  // namespace tombolo::experiments
