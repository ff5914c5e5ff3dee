// SPDX-License-Identifier: Apache-2.0
#include "host/processes/processors.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>

#include "host/processes/control_groups.h"

namespace tombolo::host {
namespace {

// Processor time and the period that it is for, in microseconds.
std::uint32_t quota_of(const ControlGroup& group) {
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (group.version == ControlGroup::Version::second) {
    std::ifstream(group.folder + "/cpu.max") >> quota >> period;  // the quota may be "max"
  } else {
    std::ifstream(group.folder + "/cpu.cfs_quota_us") >> quota;  // may be -1
    std::ifstream(group.folder + "/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return ProcessorQuota::unlimited;
  const std::int64_t processors = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(processors, ProcessorQuota::unlimited));
}

}  // namespace

void ProcessorSet::add(const ProcessorSet& others) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
}

std::uint32_t ProcessorSet::count() const {
  int count = 0;
  for (const std::uint64_t word : words_) count += std::popcount(word);
  return static_cast<std::uint32_t>(count);
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

ProcessorQuota processor_quota(const std::string& root) {
  ProcessorQuota least;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const std::uint32_t processors = quota_of(group);
    // Of equal ones the outermost, which most processes are in.
    if (processors == ProcessorQuota::unlimited || processors > least.processors) continue;
    struct stat folder {};
    least = {processors, stat(group.folder.c_str(), &folder) == 0 ? folder.st_ino : 0};
  }
  return least;
}

ProcessorShare processor_share() { return {allowed_processors(), processor_quota()}; }

std::uint32_t processors(const std::string& root) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const std::uint32_t all =
      online > 0 ? static_cast<std::uint32_t>(online) : std::max(1u, allowed_processors().count());
  return std::min(all, processor_quota(root).processors);
}

}  // namespace tombolo::host
