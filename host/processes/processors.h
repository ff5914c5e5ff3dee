// SPDX-License-Identifier: Apache-2.0
// Purpose: how many processors this host has for all its processes, which of them this process may
// run on, and the processor time that its control groups leave it. Thread safety: yes.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

namespace tombolo::host {

// Trivially copyable, so that processes can tell it to each other.
class ProcessorSet {
 public:
  static constexpr std::uint32_t most = 1024;  // numbers from 0

  void add(std::uint32_t number) { words_[number / 64] |= std::uint64_t{1} << number % 64; }
  void add(const ProcessorSet& others);
  std::uint32_t count() const;

 private:
  std::array<std::uint64_t, most / 64> words_{};
};

// Those that the first thread of this process may run on: a container, taskset or a launcher may
// have chosen them. Empty on a host whose processors have numbers beyond the set's.
ProcessorSet allowed_processors();

// The processor time that a control group has for all its processes together, as containers are
// given it (`docker --cpus`, limits of Kubernetes): a group that has used it up is stopped until
// the next period. Trivially copyable.
struct ProcessorQuota {
  static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t processors = unlimited;  // that it keeps busy, rounded up; at least 1
  std::uint64_t group = 0;               // of this host, the same for all that are in it
};

// The least of the groups that this process is in, of both versions (cpu.max, cpu.cfs_quota_us).
// Unlimited where none is known. `root` replaces "/" in tests.
ProcessorQuota processor_quota(const std::string& root = "/");

// This process's part of the host. Trivially copyable.
struct ProcessorShare {
  ProcessorSet allowed;
  ProcessorQuota quota;
};
ProcessorShare processor_share();

// Those that are online, whatever subset a launcher has bound this process to, or as many as its
// quota keeps busy; at least 1.
std::uint32_t processors(const std::string& root = "/");

}  // namespace tombolo::host
