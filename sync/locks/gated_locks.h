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
//           bool try_shared(Home, bool holding), bool try_exclusive(Home)
//   Gate:   Gate(C&, Word, Waiting<C>&), Status enter_exclusive(bool holding), leave_exclusive(),
//           Status enter_all(), leave_all(), bool try_exclusive(bool holding), bool try_all()
//
// Invariants: GL1 while a core holds an exclusive lock and the gate is settled, it is in the gate,
//                 so no lock-all is held; FA1 of first_lock_all.h covers the time before.
//             GL2 the gate is entered before the target's lock is waited for, and left after it.
//             GL3 a core waits in the gate or at one target, never in both: one node serves (WN1).
//             GL4 a core that holds a lock of the window (`holding`) and asks for a shared lock or
//                 the gate waits for those that are in, not for those that wait: it counts itself
//                 at once, which keeps others out. Otherwise two readers that lock the same two
//                 targets in opposite order, and a writer waiting at each, would wait for each
//                 other for ever, though no order of locking forbids readers to meet.
//             GL5 the core stays in the gate while it has or waits for a lock that relies on it,
//                 and no longer: another thread may wait in the gate behind a core that waits for
//                 us to leave.
// Memory: 3 lines per home. After an error the core may still be queued: the locks of the window
// can no longer be used.
// Thread safety: as LockOptions::threads says: one thread waits in the queues, the others try.
#pragma once

#include <mutex>

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/locks/callers.h"
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
        gate_(core, gate_word_, waiting_),
        state_(options.threads),
        turn_(core, options) {}
  // The parts refer to `waiting_`.
  GatedLocks(const GatedLocks&) = delete;
  GatedLocks& operator=(const GatedLocks&) = delete;

  Status lock(Access access, Home target) {
    return turn_.take([&] { return wait_for(access, target); },
                      [&] { return attempt(access, target); });
  }

  void unlock(Access access, Home target) {
    {
      const std::lock_guard guard(state_);
      --held_;
    }
    if (access == Access::shared) return target_.unlock_shared(target);
    target_.unlock_exclusive(target);
    const std::lock_guard guard(state_);
    --exclusive_held_;
    leave_gate();
  }

  Status lock_all() {
    return turn_.take(
        [&]() -> Status {
          if (!settled_)
            TOMBOLO_TRY(settle_lock_all(core_, gate_word_, waiting_.backoff,
                                        [&](Home home) { return target_.has_exclusive(home); }));
          settled_ = true;
          return gate_.enter_all();
        },
        [&] { return (core_.load(gate_word_) & lock_all_settled) != 0 && gate_.try_all(); });
  }
  void unlock_all() { gate_.leave_all(); }

 private:
  Status wait_for(Access access, Home target) {
    bool holding = false;
    {
      const std::lock_guard guard(state_);
      holding = held_ != 0;
    }
    TOMBOLO_TRY(access == Access::shared ? target_.lock_shared(target, holding)
                                         : wait_exclusive(target, holding));
    const std::lock_guard guard(state_);
    ++held_;
    return {};
  }

  Status wait_exclusive(Home target, bool holding) {
    if (!knows_gate()) {
      TOMBOLO_TRY(target_.lock_exclusive(target));
      if (keep_without_gate(target)) [[likely]]
        return {};
    }
    if (!rely_on_gate()) {
      TOMBOLO_TRY(gate_.enter_exclusive(holding));
      const std::lock_guard guard(state_);
      ++in_gate_;
      ++coming_;
    }
    Status status = target_.lock_exclusive(target);
    const std::lock_guard guard(state_);
    --coming_;
    if (status.ok()) ++exclusive_held_;
    return status;
  }

  // Without waiting; leaves nothing behind where it fails.
  bool attempt(Access access, Home target) {
    const std::lock_guard guard(state_);
    const bool holding = held_ != 0;
    if (!(access == Access::shared ? target_.try_shared(target, holding)
                                   : try_exclusive(target, holding)))
      return false;
    ++held_;
    return true;
  }

  bool try_exclusive(Home target, bool holding) {
    if (!gate_first_) {
      if (!target_.try_exclusive(target)) return false;
      if ((core_.load(gate_word_) & lock_all_used) == 0) {
        ++exclusive_held_;
        return true;
      }
      gate_first_ = true;
      target_.unlock_exclusive(target);
    }
    if (in_gate_ == 0) {
      if (!gate_.try_exclusive(holding)) return false;
      ++in_gate_;
    }
    if (target_.try_exclusive(target)) {
      ++exclusive_held_;
      return true;
    }
    leave_gate();
    return false;
  }

  bool knows_gate() {
    const std::lock_guard guard(state_);
    return gate_first_;
  }

  // The lock of `target` was taken without the gate: it may stay so if no core uses lock-all.
  bool keep_without_gate(Home target) {
    const bool used = (core_.load(gate_word_) & lock_all_used) != 0;
    const std::lock_guard guard(state_);
    if (!used) [[likely]] {
      ++exclusive_held_;
      return true;
    }
    gate_first_ = true;
    target_.unlock_exclusive(target);
    return false;
  }

  // True if the core is in the gate already, and will be until `coming_` is lowered again.
  bool rely_on_gate() {
    const std::lock_guard guard(state_);
    if (in_gate_ == 0) return false;
    ++coming_;
    return true;
  }

  // Under `state_` (GL5).
  void leave_gate() {
    if (exclusive_held_ != 0 || coming_ != 0) return;
    for (; in_gate_ != 0; --in_gate_) gate_.leave_exclusive();
  }

  C& core_;
  typename C::Word gate_word_;
  Waiting<C> waiting_;
  Target target_;
  Gate gate_;
  StateMutex state_;                  // guards the members below, but for settled_
  std::uint32_t held_ = 0;            // single locks, of both kinds
  std::uint32_t exclusive_held_ = 0;  // of these, exclusive
  std::uint32_t coming_ = 0;          // exclusive locks that wait for their target, in the gate
  std::uint32_t in_gate_ = 0;         // how often this core has entered; once, but for threads
  bool gate_first_ = false;           // this core knows that the window uses lock-all
  Turn<C> turn_;
  bool settled_ = false;  // this core knows that the gate is settled; used in the turn
};

}  // namespace tombolo::sync
