// SPDX-License-Identifier: Apache-2.0
// Purpose: RCCE, Intel's library of messages for the chip (000 section 2.3.3, 002 section 4.1): a
// name space of flags and of one buffer in the message passing buffer of each core, put and get,
// and blocking messages upon them.
//
//   Rcce rcce(cpu, rank, cores);
//   rcce.send(place, bytes, 1);   // on rank 0;   rcce.recv(place, bytes, 0) on rank 1
//
// A message goes chunk by chunk in lockstep: the sender copies a chunk into its own buffer and sets
// a flag at the receiver, which copies it out of the sender's buffer and sets a flag there.
//
// Invariants: RF1 each flag is a byte with one core that sets it; bytes of other flags in its line
//                 are not written along.
//             RF2 before a store into a buffer the lines of buffers in L1 are invalidated: a store
//                 that hit one would stay there, and be lost.
//             RF3 both sides name each other and the same number of bytes: the caller's part.
// Thread safety: belongs to the program of its core. One for each core and run.
#pragma once

#include <cstdint>
#include <vector>

#include "baselines/omitted.h"
#include "baselines/private_memory.h"

namespace tombolo::baselines {

class Rcce {
 public:
  // `cores` has the core of each process, and outlives this.
  Rcce(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted = {});

  Cpu& cpu() { return cpu_; }
  PrivateMemory& memory() { return memory_; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(cores_.size()); }
  std::size_t buffer_bytes() const { return buffer_bytes_; }

  void send(Place from, std::size_t bytes, std::uint32_t to);
  void recv(Place to, std::size_t bytes, std::uint32_t from);
  void barrier();

  // One-sided, without any synchronization: bytes of the buffer of a process.
  void put(Place from, std::uint32_t process, std::size_t offset, std::size_t bytes);
  void get(std::uint32_t process, std::size_t offset, Place to, std::size_t bytes,
           TargetLines lines = TargetLines::as_they_are);

 protected:
  // Flags of a process, one for each other.
  enum Flag : std::uint32_t { kSent, kReady, kArrived, kReleased, kChunksSent, kChunksTaken };
  static constexpr std::uint32_t kFlags = 6;

  // The flag of `process` that `setter` sets.
  void set_flag(std::uint32_t process, Flag flag, std::uint32_t setter, std::uint8_t value);
  std::uint8_t flag(Flag flag, std::uint32_t setter);
  void wait_for_flag(Flag flag, std::uint32_t setter, std::uint8_t value);

 private:
  View flag_view(std::uint32_t process, Flag flag, std::uint32_t setter) const;
  View buffer_view(std::uint32_t process, std::size_t offset, std::size_t bytes) const;
  void invalidate();
  void flush();

  Cpu& cpu_;
  PrivateMemory memory_;
  const std::vector<CoreId>& cores_;
  std::uint32_t rank_;
  Omitted omitted_;
  std::size_t flag_bytes_;  // of one kind, in whole lines
  std::size_t buffer_bytes_;
  std::uint8_t barriers_ = 0;
};

}  // namespace tombolo::baselines
