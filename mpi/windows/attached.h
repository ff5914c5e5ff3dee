// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory that this process attached to one dynamic window.
// Invariants: D1 attached ranges do not overlap (MPI: it is erroneous to attach overlapping
// memory). Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "backends/host/own_memory.h"
#include "mpi/host/mpi_header.h"

namespace tombolo::mpi {

class Attached {
 public:
  // MPI_SUCCESS or an MPI error class.
  int add(const void* base, MPI_Aint bytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(base);
    const auto end = start + static_cast<std::uintptr_t>(bytes);
    const std::lock_guard lock(mutex_);
    const auto next = ranges_.lower_bound(start);
    if (next != ranges_.end() && next->first < end) return MPI_ERR_RMA_ATTACH;
    if (next != ranges_.begin() && std::prev(next)->second.range().high > start)
      return MPI_ERR_RMA_ATTACH;
    if (bytes > 0)
      ranges_[start] = host::own_memory().enter(base, static_cast<std::uint64_t>(bytes));
    else
      empty_.insert(start);
    return MPI_SUCCESS;
  }
  int remove(const void* base) {
    const auto start = reinterpret_cast<std::uintptr_t>(base);
    const std::lock_guard lock(mutex_);
    if (ranges_.erase(start) > 0) return MPI_SUCCESS;
    const auto empty = empty_.find(start);
    if (empty == empty_.end()) return MPI_ERR_RMA_ATTACH;
    empty_.erase(empty);
    return MPI_SUCCESS;
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, host::OwnMemory::Use> ranges_;  // by start
  std::multiset<std::uintptr_t> empty_;                    // attached with 0 bytes
};

}  // namespace tombolo::mpi
