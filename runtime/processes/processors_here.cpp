// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processors_here.h"

#include <algorithm>

namespace tombolo::runtime {

void ProcessorsHere::add(const host::ProcessorShare& process) {
  ++processes_;
  known_ = known_ && process.allowed.count() > 0;
  all_.add(process.allowed);
  if (process.quota.processors == host::ProcessorQuota::unlimited)
    limited_ = false;
  else
    quotas_[process.quota.group] = process.quota.processors;
}

std::uint32_t ProcessorsHere::count() const {
  if (!known_ || processes_ == 0) return host::processors();
  std::uint64_t count = all_.count();
  std::uint64_t busy = 0;
  for (const auto& [group, processors] : quotas_) busy += processors;
  if (limited_) count = std::min(count, busy);
  return static_cast<std::uint32_t>(count);
}

std::uint32_t processors_for(std::uint32_t processes) {
  ProcessorsHere own;
  if (processes <= 1) own.add(host::processor_share());
  return own.count();
}

}  // namespace tombolo::runtime
