// SPDX-License-Identifier: Apache-2.0
// Purpose: a node of the tree of families, as far as the scheduler knows it: the family that
// created it, and whether its threads are to end.
//
// Invariants: VSC1 a scope outlives the scopes below it: each family is synced by its creator.
//             VSC2 the first reason to stop stays.
// Thread safety: yes.
#pragma once

#include <atomic>
#include <cstdint>

namespace tombolo::svp {

// Thrown to leave a thread whose family has been stopped; the scheduler catches it where the thread
// began. A thread that catches everything has to throw it on.
struct Stopped {};

class Scope {
 public:
  explicit Scope(Scope* parent) : parent_(parent) {}

  Scope* parent() const { return parent_; }
  // 0: its threads may run. relaxed: only the thread's end depends on it; the value that
  // belongs to the reason is read at the sync.
  std::uint32_t reason() const { return reason_.load(std::memory_order_relaxed); }
  // False: it was stopped before.
  bool stop(std::uint32_t reason) {
    std::uint32_t none = 0;
    return reason_.compare_exchange_strong(none, reason);
  }
  // This scope or one above it was stopped.
  bool stopped() const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_)
      if (scope->reason() != 0) return true;
    return false;
  }
  bool within(const Scope& other) const {
    const Scope* scope = this;
    while (scope != nullptr && scope != &other) scope = scope->parent_;
    return scope != nullptr;
  }

 private:
  Scope* parent_;
  std::atomic<std::uint32_t> reason_{0};
};

}  // namespace tombolo::svp
