// SPDX-License-Identifier: Apache-2.0
// Purpose: a lock family with lock-all made of two parts: the lock of a target, which knows nothing
// of lock-all, and a gate at home 0 that keeps lock-alls and exclusive locks apart.
//
//   shared       the target's lock
//   exclusive    the gate (once per core, however many exclusive locks it holds), then the target's
//                lock; the gate is left out until the window uses lock-all (first_lock_all.h)
//   lock-all     the gate
//
//   Target: Layout take(SyncLayout&), Target(C&, Layout, Waiting<C>&),
//           Status lock_shared(Home, bool holding), unlock_shared(Home),
//           Status lock_exclusive(Home), unlock_exclusive(Home), bool has_exclusive(Home)
//   Gate:   Gate(C&, Word, Waiting<C>&), Status enter_exclusive(bool holding), leave_exclusive(),
//           Status enter_all(), leave_all()
//
// Invariants: G1 while a core holds an exclusive lock and the gate is settled, it is in the gate,
//                so no lock-all is held; L1 of first_lock_all.h covers the time before.
//             G2 the gate is entered before the target's lock is waited for, and left after it.
//             G3 a core waits in the gate or at one target, never in both: one node serves (N1).
//             G4 a core that holds a lock of the window (`holding`) and asks for a shared lock or
//                the gate waits for those that are in, not for those that wait: it counts itself at
//                once, which keeps others out. Otherwise two readers that lock the same two targets
//                in opposite order, and a writer waiting at each, would wait for each other for
//                ever, though no order of locking forbids readers to meet.
// Memory: 3 lines per home. After a fault the core may still be in a queue: the locks of the window
// can no longer be used.
// Thread safety: one call at a time per object.
#pragma once

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/locks/first_lock_all.h"
#include "sync/locks/lock_kind.h"
#include "sync/locks/packed_word.h"
#include "sync/locks/wait_node.h"

namespace tombolo::sync {

template <machine::Core C, class Target, class Gate>
class GatedLocks {
 public:
  using Home = machine::Home;

  struct Layout {
    machine::Offset gate = 0;  // used at home 0 only
    typename Target::Layout target;
    typename WaitNode<C>::Layout node;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    check_cores(cores);
    return {.gate = layout.take_lines(1),
            .target = Target::take(layout),
            .node = WaitNode<C>::take(layout)};
  }

  GatedLocks(C& core, Layout layout, const LockOptions& options)
      : core_(core),
        gate_word_(core.word({0, layout.gate})),
        waiting_{.node = {core, layout.node}, .backoff = {core, options}},
        target_(core, layout.target, waiting_),
        gate_(core, gate_word_, waiting_) {}
  // The parts refer to `waiting_`.
  GatedLocks(const GatedLocks&) = delete;
  GatedLocks& operator=(const GatedLocks&) = delete;

  Status lock(Access access, Home target) {
    TOMBOLO_TRY(access == Access::shared ? target_.lock_shared(target, held_ != 0)
                                         : lock_exclusive(target));
    ++held_;
    return {};
  }

  void unlock(Access access, Home target) {
    --held_;
    if (access == Access::shared) return target_.unlock_shared(target);
    target_.unlock_exclusive(target);
    if (--exclusive_held_ != 0 || !in_gate_) return;
    in_gate_ = false;
    gate_.leave_exclusive();
  }

  Status lock_all() {
    if (!settled_) {
      TOMBOLO_TRY(settle_lock_all(core_, gate_word_, waiting_.backoff,
                                  [&](Home home) { return target_.has_exclusive(home); }));
      settled_ = true;
    }
    return gate_.enter_all();
  }
  void unlock_all() { gate_.leave_all(); }

 private:
  Status lock_exclusive(Home target) {
    if (!gate_first_) {
      TOMBOLO_TRY(target_.lock_exclusive(target));
      if ((core_.load(gate_word_) & lock_all_used) == 0) [[likely]] {
        ++exclusive_held_;
        return {};
      }
      gate_first_ = true;
      target_.unlock_exclusive(target);
    }
    if (!in_gate_) TOMBOLO_TRY(gate_.enter_exclusive(held_ != 0));
    in_gate_ = true;
    TOMBOLO_TRY(target_.lock_exclusive(target));
    ++exclusive_held_;
    return {};
  }

  C& core_;
  typename C::Word gate_word_;
  Waiting<C> waiting_;
  Target target_;
  Gate gate_;
  std::uint32_t held_ = 0;            // single locks, of both kinds
  std::uint32_t exclusive_held_ = 0;  // of these, exclusive
  bool in_gate_ = false;
  bool gate_first_ = false;  // this core knows that the window uses lock-all
  bool settled_ = false;     // this core knows that the gate is settled
};

}  // namespace tombolo::sync
