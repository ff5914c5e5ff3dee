// SPDX-License-Identifier: Apache-2.0
// Purpose: spares small segments a look at the host's memory each (memory_room.h: some 25 files, a
// tenth of a millisecond). A look grants a small share of the room that it found, for a short time.
//
//   if (grants.take(bytes, now)) return {};
//   const MemoryRoom room = memory_room();
//   if (bytes > room.bytes) return Status::no_memory(...);
//   grants.looked(room.bytes, bytes, now);
//
// Invariants: MGR1 between two looks no more than a 64th of the room of the first is granted, and
//                  nothing a second after it: other processes may take as much memory meanwhile.
// Thread safety: yes.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace tombolo::host {

class MemoryGrants {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether so many bytes are granted; afterwards they are taken.
  bool take(std::uint64_t bytes, Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (now >= until_ || bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  // `room` bytes were free, of which the caller takes `taken`.
  void looked(std::uint64_t room, std::uint64_t taken, Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    left_ = (room - taken) / 64;
    until_ = now + std::chrono::seconds(1);
  }

 private:
  std::mutex mutex_;
  std::uint64_t left_ = 0;  // bytes
  Clock::time_point until_{};
};

}  // namespace tombolo::host
