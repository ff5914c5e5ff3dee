// SPDX-License-Identifier: Apache-2.0
#include "host/processes/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

namespace tombolo::host {

void ProcessorSet::add(const ProcessorSet& others) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
}

std::uint32_t ProcessorSet::count() const {
  int count = 0;
  for (const std::uint64_t word : words_) count += std::popcount(word);
  return static_cast<std::uint32_t>(count);
}

std::uint32_t processors() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<std::uint32_t>(online)
                    : std::max(1u, allowed_processors().count());
}

ProcessorSet allowed_processors() {
  static_assert(ProcessorSet::most == CPU_SETSIZE);
  ProcessorSet allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return allowed;
  for (std::uint32_t number = 0; number < ProcessorSet::most; ++number)
    if (CPU_ISSET(number, &set)) allowed.add(number);
  return allowed;
}

}  // namespace tombolo::host
