// SPDX-License-Identifier: Apache-2.0
// Purpose: processes on the simulated chip: gives each its core, its sync memory and its data, and
// runs them to their end.
//
//   Job job(parameters, {.processes = 8, .sync_bytes = Window<Core>::sync_bytes(8),
//                        .data_bytes = 4096});
//   RunResult result = job.run([&](const scc::Attachment& at, Cpu& cpu) {
//     windows::Window<scc::Core> window(at, {});
//     ...
//   });
//
// Invariants: JB1 sync memory is zero before the first process starts, and each process starts at
//                 time 0.
// Thread safety: one job belongs to one thread.
#pragma once

#include <functional>
#include <vector>

#include "backends/scc/scc.h"

namespace tombolo::scc {

struct JobShape {
  std::uint32_t processes = 2;
  std::vector<CoreId> cores = {};  // by process; empty: process n on core n
  std::size_t sync_bytes = 4096;
  std::uint64_t data_bytes = 4096;
  Placement placement = {};
  simulator::Options options = {};
  machine::IdleHook* idle = nullptr;
};

class Job {
 public:
  using Program = std::function<void(const Attachment&, Cpu&)>;

  // Ends the process if the shape asks for more cores or memory than the chip has: see fits().
  Job(const Parameters& parameters, const JobShape& shape);

  // bad_configuration, with the chip's size, if a job of this shape has no room on the chip.
  static Status fits(const Parameters& parameters, const JobShape& shape);

  Chip& chip() { return chip_; }
  const std::vector<CoreId>& cores() const { return cores_; }
  const Attachment& attachment(machine::Home home) const { return attachments_[home]; }

  // Once.
  simulator::RunResult run(const Program& program);

 private:
  JobShape shape_;
  Chip chip_;
  std::vector<CoreId> cores_;
  std::vector<Attachment> attachments_;
};

}  // namespace tombolo::scc
