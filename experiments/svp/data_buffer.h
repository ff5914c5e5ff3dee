// SPDX-License-Identifier: Apache-2.0
// Purpose: the buffer in which the distributed implementation of SVP gathers a message (002 section
// 5.1): it grows by doubling, is encoded into a second buffer that is sent, and on the other side
// decoded from the one that was received. Each element costs a call at each step.
//
// Invariants: GBF1 numbers are in the order of XDR between encode and decode, and nowhere else.
// Thread safety: as Cpu.
#pragma once

#include <vector>

#include "experiments/svp/linux.h"

namespace tombolo::experiments {

// So many elements of so many bytes, one after the other.
struct Run {
  std::uint64_t count = 0;
  std::uint32_t element_bytes = 8;
  std::uint64_t bytes() const { return count * element_bytes; }
};

class DataBuffer {
 public:
  explicit DataBuffer(Linux& system) : system_(system) {}
  // Without the time of clear(): a program that is unwound may not spend any.
  ~DataBuffer() {
    if (capacity_ > 0) system_.heap().free(memory_);
  }
  DataBuffer(const DataBuffer&) = delete;
  DataBuffer& operator=(const DataBuffer&) = delete;

  // Frees the memory.
  void clear();
  // no_memory: the process's. Room for all that is to come.
  Status reserve(std::uint64_t bytes);
  Status gather(scc::View from, const Run& run);
  // The next elements go to their places.
  void scatter(scc::View to, const Run& run);

  const std::vector<Run>& runs() const { return runs_; }
  std::uint64_t bytes() const { return bytes_; }

  // All of it into `to`; out of it, as the runs say.
  void encode(scc::View to);
  Status decode(scc::View from, const std::vector<Run>& runs);

 private:
  scc::View at(std::uint64_t byte) const { return {memory_ + byte, scc::MemoryType::dcm}; }
  Status grow(std::uint64_t bytes);
  void turn(scc::View from, scc::View to);

  Linux& system_;
  simulator::Address memory_;
  std::uint64_t bytes_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<Run> runs_;
};

// memcpy by the program, with looks for interrupts.
void copy_memory(Linux& system, scc::View from, scc::View to, std::uint64_t bytes);

}  // namespace tombolo::experiments
