// SPDX-License-Identifier: Apache-2.0
// Purpose: the queue lock of Mellor-Crummey and Scott (TOCS 1991, algorithm 5; 001 section 4.3):
// mutual exclusion, first come first served, every core waits on a word of its own home. One lock
// for each home.
//
// Uncontended: one exchange, one compare_exchange. Contended: the exchange and two stores, whatever
// the number of waiters. Memory: two lines per home.
//
// Invariants: MC1 the tail names the last core of the queue, 0 if there is none. The core that
//                 exchanges 0 holds the lock; every other core links itself behind the one it
//                 found.
//             MC2 a core's node stays in the queue while it holds the lock. Hence a core holds one
//                 lock of this object at a time (checked).
// After an error of acquire the core is still in the queue: the locks can no longer be used.
// Data: exchange and the wait come before the caller's refresh (R5), release after its publish and
// drain (R4).
// Thread safety: one call at a time per object.
#pragma once

#include "base/check.h"
#include "machine/contract.h"
#include "sync/locks/wait_node.h"

namespace tombolo::sync {

template <machine::Core C>
class McsLock {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset tail = 0;
    typename WaitNode<C>::Layout node;
  };
  static Layout take(machine::SyncLayout& layout, Home /*cores*/) {
    return {.tail = layout.take_lines(1), .node = WaitNode<C>::take(layout)};
  }

  McsLock(C& core, Layout layout) : core_(core), layout_(layout), node_(core, layout.node) {}

  Status acquire(Home target) {
    TOMBOLO_CHECK(!held_, "mcs lock: core {} asks for lock {} and holds another", core_.self(),
                  target);
    held_ = true;
    node_.arm(0);
    const std::uint64_t before = core_.exchange(tail(target), node_.name());
    if (before == 0) return {};
    node_.link(before, node_.name());
    return node_.wait_granted();
  }

  Status release(Home target) {
    held_ = false;
    if (node_.next() == 0) {
      if (core_.compare_exchange(tail(target), node_.name(), 0) == node_.name()) return {};
      // A core is between its exchange and its link.
      TOMBOLO_TRY(node_.wait_linked());
    }
    node_.grant(node_.next());
    return {};
  }

 private:
  typename C::Word tail(Home target) { return core_.word({target, layout_.tail}); }

  C& core_;
  Layout layout_;
  WaitNode<C> node_;
  bool held_ = false;
};

}  // namespace tombolo::sync
