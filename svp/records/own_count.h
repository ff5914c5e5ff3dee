// SPDX-License-Identifier: Apache-2.0
// Purpose: a count that one thread raises and others may read.
// Thread safety: add() by its thread; value() by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace tombolo::svp {

class OwnCount {
 public:
  // relaxed: a count orders nothing. One thread adds, so no atomic addition is needed.
  void add() {
    value_.store(value_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // relaxed: likewise.
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Of a worker.
struct WorkerCounts {
  OwnCount inlined;    // families that this worker created and ran itself at their sync
  OwnCount awaited;    // families that it created, and that others ran
  OwnCount stolen;     // tasks that it took from another worker's deque: families, parts of ranges
  OwnCount delegated;  // tasks that it took from the queue of its place
  OwnCount blocked;    // reads of channels that parked a stack
  OwnCount parked;     // stacks that it parked for families which others ran
};

}  // namespace tombolo::svp
