// SPDX-License-Identifier: Apache-2.0
// Purpose: an exchange over memory that the processes of one host share already: a round takes some
// cache lines' transfers, where messages of a host MPI take microseconds, and on a host that is
// busy with other programs time slices.
//
// Each process has two rooms, used in turn, and counts the rounds that it has offered. A round: the
// own bytes go to the own room, then the count; then the others' are read as they come.
//
// Invariants: XC1, XC2 (exchange.h).
//             MEX1 a process changes a room in round r only after all processes have offered round
//                 r - 1, so after they have read all rooms of round r - 2: the same room.
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "machine/waiting.h"

namespace tombolo::runtime {

class MemoryExchange {
 public:
  // Of the memory that all share, on a multiple of 64.
  static std::size_t bytes_for(int size);

  // `memory`: zeros at first, the same of all processes. `idle`: may be null; an error of it ends
  // the exchange. Both outlive the exchange.
  MemoryExchange(std::byte* memory, int rank, int size, machine::WaitPolicy waiting,
                 machine::IdleHook* idle)
      : memory_(memory), rank_(rank), size_(size), waiting_(waiting), idle_(idle) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  Status gather(const void* mine, void* everyones, std::size_t bytes);
  Status broadcast(void* data, std::size_t bytes, int root);
  bool all(bool yes);
  Status broken() const { return broken_; }

 private:
  struct Desk;
  Desk& desk(int rank) const;
  template <class Take>
  Status round(const void* mine, std::size_t bytes, Take&& take);
  Status wait_for(Desk& peer);

  std::byte* memory_;
  int rank_;
  int size_;
  machine::WaitPolicy waiting_;
  machine::IdleHook* idle_;
  std::uint64_t round_ = 0;
  Status broken_;
};

}  // namespace tombolo::runtime
