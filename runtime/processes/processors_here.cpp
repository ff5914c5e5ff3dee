// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processors_here.h"

namespace tombolo::runtime {

void ProcessorsHere::add(const host::ProcessorSet& process) {
  ++processes_;
  known_ = known_ && process.count() > 0;
  all_.add(process);
}

std::uint32_t ProcessorsHere::count() const {
  return known_ && processes_ > 0 ? all_.count() : host::processors();
}

std::uint32_t processors_for(std::uint32_t processes) {
  ProcessorsHere own;
  if (processes <= 1) own.add(host::allowed_processors());
  return own.count();
}

}  // namespace tombolo::runtime
