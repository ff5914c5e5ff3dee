// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/divided_copy.h"

#include <algorithm>

namespace tombolo::experiments {
namespace {

constexpr std::uint64_t line = 32;

// By the table of that core, over the mesh.
SystemAddress look_up(scc::Cpu& cpu, const CoreMemory& memory) {
  const std::uint64_t page = cpu.chip().page_bytes();
  const scc::LutEntry entry =
      cpu.read_lut(memory.core, static_cast<std::uint32_t>(memory.at.byte() / page));
  return {entry.device, entry.offset + memory.at.byte() % page};
}

}  // namespace

// Equal parts of whole lines. No part needs a second command at the end of a page.
std::vector<Ticket> submit_divided(scc::Cpu& cpu, std::span<const simulator::CoreId> copy_cores,
                                   const CoreMemory& from, const CoreMemory& to,
                                   std::uint64_t bytes) {
  const SystemAddress source = look_up(cpu, from);
  const SystemAddress target = look_up(cpu, to);
  const std::uint64_t part =
      (bytes / copy_cores.size() + line) / line * line;  // the last one is the smallest
  CopyClient client(cpu);
  std::vector<Ticket> tickets;
  std::uint64_t done = 0;
  for (const simulator::CoreId core : copy_cores) {
    const std::uint64_t n = std::min(part, bytes - done);
    if (n == 0) break;
    tickets.push_back(client.submit(core, {.from = {source.controller, source.offset + done},
                                           .to = {target.controller, target.offset + done},
                                           .bytes = static_cast<std::uint32_t>(n),
                                           .method = CopyMethod::memcpy}));
    done += n;
  }
  return tickets;
}

}  // namespace tombolo::experiments
