// SPDX-License-Identifier: Apache-2.0
// Purpose: how many processors the processes of a job have on this host, all together. The set of
// one of them does not say so: a launcher may have bound each to a part, a container all to the
// same; nor does its quota of processor time, which may be its own or that of all.
// Thread safety: ProcessorsHere belongs to one thread.
#pragma once

#include <cstdint>
#include <map>

#include "host/processes/processors.h"

namespace tombolo::runtime {

// Of processes of this host that have told their shares.
class ProcessorsHere {
 public:
  void add(const host::ProcessorShare& process);

  std::uint32_t processes() const { return processes_; }
  // As many as the sets have together, or as the quotas keep busy. All of the host if a process
  // does not know its set, or none was added.
  std::uint32_t count() const;

 private:
  host::ProcessorSet all_;
  std::map<std::uint64_t, std::uint32_t> quotas_;  // by control group
  bool limited_ = true;                            // each process is in one of these
  std::uint32_t processes_ = 0;
  bool known_ = true;
};

// As far as this process knows by itself, one of `processes` here: those that it may run on if it
// is the only one, else all of the host.
std::uint32_t processors_for(std::uint32_t processes);

}  // namespace tombolo::runtime
