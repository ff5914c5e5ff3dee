// SPDX-License-Identifier: Apache-2.0
// Purpose: the private memory of a process, from which messages are sent and into which they are
// received, and the copy loops between it and message passing buffers. It is cached in both levels
// (DCM) unless a place is mapped otherwise.
//
//   const Place in = memory.allocate(4096);          // the program sees its bytes at in.host
//   const Place out = memory.allocate_simulated(64); // its bytes are those of the caches
//
// Invariants: PR1 only its core reaches private memory, so that a copy of its bytes on the host is
//                 equal to the caches' contents; the time is the chip's in both cases.
//             PR2 loops go line by line: a line is read before any of it is written.
// Thread safety: a memory belongs to the program of its core.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "backends/scc/cpu.h"

namespace tombolo::baselines {

using scc::Cpu;
using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

struct Place {
  Address address;
  std::byte* host = nullptr;  // its bytes; null: in the simulated memory
  MemoryType type = MemoryType::dcm;

  Place operator+(std::size_t bytes) const {
    return {address + bytes, host == nullptr ? nullptr : host + bytes, type};
  }
  Place mapped(MemoryType as) const { return {address, host, as}; }
};

// Loads and stores of a program, for their bytes and their time.
void load(Cpu& cpu, Place from, void* to, std::size_t bytes);
void store(Cpu& cpu, Place to, const void* from, std::size_t bytes);
// For the time alone of a program's accesses to bytes at `host`.
void touch_read(Cpu& cpu, Place from, std::size_t bytes);
void touch_write(Cpu& cpu, Place to, std::size_t bytes);

// Copy loops. A store that misses both levels goes to memory, word by word, and leaves no line: a
// loop that first loads a word of each line of its target is the faster (002 section 4.2).
enum class TargetLines : bool { as_they_are, fetched };
void copy_out(Cpu& cpu, Place from, View to, std::size_t bytes);
void copy_in(Cpu& cpu, View from, Place to, std::size_t bytes,
             TargetLines lines = TargetLines::as_they_are);
void copy(Cpu& cpu, Place from, Place to, std::size_t bytes);

class PrivateMemory {
 public:
  explicit PrivateMemory(Cpu& cpu) : cpu_(cpu) {}
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;

  // For good; zero.
  Place allocate(std::size_t bytes);
  Place allocate_simulated(std::size_t bytes) { return {cpu_.allocate_private(bytes)}; }

  // For a while. Both are told the same number of bytes.
  Place borrow(std::size_t bytes);
  void give_back(Place place, std::size_t bytes);

 private:
  Cpu& cpu_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::vector<std::vector<Place>> free_;  // by power of two of lines
};

}  // namespace tombolo::baselines
