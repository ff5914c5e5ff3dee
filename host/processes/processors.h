// SPDX-License-Identifier: Apache-2.0
// Purpose: how many processors this host has for all its processes, and which of them this process
// may run on. Thread safety: yes.
#pragma once

#include <array>
#include <cstdint>

namespace tombolo::host {

// Those that are online, whatever subset a launcher has bound this process to; at least 1.
std::uint32_t processors();

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

}  // namespace tombolo::host
