// SPDX-License-Identifier: Apache-2.0
// Purpose: keeps lock-alls and exclusive locks of a window apart, preferring the latter: group
// mutual exclusion (Joung, PODC 1998) of two groups by one word at home 0. It is the "global state"
// that 001 section 7.2 says writer-preference locks lack.
//
//   word   cores with exclusive locks | lock-alls | waiting cores | waiting lock-alls | two flags
//
// A core with exclusive locks counts at once and then waits only for the lock-alls that are held; a
// lock-all waits until no such core is left. Waiting cores form two stacks through their nodes, and
// a granted one grants the next. One atomic to enter, one to leave when the other group is absent.
//
// Invariants: LG1 a lock-all is held only while the exclusive count is 0 as of the atomic that
//                 counted it, and an exclusive core is in only after the lock-all count was 0 while
//                 it was counted itself. So the groups exclude each other.
//             LG2 a stack is not empty only while the other group's count is not 0; the core that
//                 brings that count to 0 takes the whole stack. (A failed attempt counts for a
//                 moment: its withdrawal obeys the same rule.)
//             LG3 when the word equals the loaded value, so does the top of a stack: since a stack
//                 is only taken whole, a push onto an equal top is right even if it was away
//                 meanwhile.
//             LG4 a core that has entered as exclusive waits in the gate only for lock-alls held,
//                 whose holders wait for no core (a core that holds lock-all asks for no lock); a
//                 core that waits for lock-all holds nothing. So the gate closes no cycle of
//                 waiting.
//             LG5 preference, and its price: after an exclusive core has counted itself, only
//                 lock-alls that are held or were granted before enter, each core once; lock-all
//                 may starve while exclusive locks overlap without end.
// Thread safety: that of gated_locks.h.
#pragma once

#include "machine/contract.h"
#include "sync/locks/packed_word.h"
#include "sync/locks/wait_node.h"

namespace tombolo::sync {

template <machine::Core C>
class LockAllGate {
 public:
  LockAllGate(C& core, typename C::Word word, Waiting<C>& waiting)
      : core_(core), word_(word), node_(waiting.node) {}

  // Whether the core holds a lock of the window makes no difference: see LG4.
  Status enter_exclusive(bool /*holding*/) {
    const std::uint64_t s = core_.fetch_add(word_, exclusives.one()) + exclusives.one();
    if (lock_alls.get(s) == 0) [[likely]]
      return {};
    return queue_exclusive(s);
  }
  void leave_exclusive() {
    const std::uint64_t s = core_.fetch_add(word_, minus(exclusives.one())) - exclusives.one();
    if (waiting_lock_alls.get(s) != 0) admit_lock_alls(s);
  }

  Status enter_all() {
    const std::uint64_t s = core_.fetch_add(word_, lock_alls.one()) + lock_alls.one();
    if (exclusives.get(s) == 0) [[likely]]
      return {};
    return queue_all(s);
  }

  // The same, if it needs no wait (callers.h).
  bool try_exclusive(bool /*holding*/) { return try_count(lock_alls, exclusives); }
  bool try_all() { return try_count(exclusives, lock_alls); }

  void leave_all() {
    const std::uint64_t s = core_.fetch_add(word_, minus(lock_alls.one())) - lock_alls.one();
    if (waiting_exclusives.get(s) != 0) admit_exclusives(s);
  }

 private:
  static constexpr Field exclusives{0, core_bits};
  static constexpr Field lock_alls{core_bits, core_bits};
  static constexpr Field waiting_exclusives{2 * core_bits, core_bits};
  static constexpr Field waiting_lock_alls{3 * core_bits, core_bits};
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }

  bool try_count(Field others, Field mine) {
    for (std::uint64_t s = core_.load(word_); others.get(s) == 0;) {
      const std::uint64_t seen = core_.compare_exchange(word_, s, s + mine.one());
      if (seen == s) return true;
      s = seen;
    }
    return false;
  }

  // Waits until the lock-alls that were held have gone; `s` holds this core's count.
  Status queue_exclusive(std::uint64_t s) {
    for (;;) {
      if (lock_alls.get(s) == 0) return {};
      node_.arm(waiting_exclusives.get(s));
      const std::uint64_t seen =
          core_.compare_exchange(word_, s, waiting_exclusives.set(s, node_.name()));
      if (seen == s) break;
      s = seen;
    }
    TOMBOLO_TRY(node_.wait_granted());
    if (const std::uint64_t next = node_.next(); next != 0) node_.grant(next);
    return {};
  }

  // `s` holds this core's count as a lock-all, to be taken back if it has to wait.
  Status queue_all(std::uint64_t s) {
    for (;;) {
      if (exclusives.get(s) == 0) return {};
      node_.arm(waiting_lock_alls.get(s));
      const std::uint64_t want = waiting_lock_alls.set(s - lock_alls.one(), node_.name());
      const std::uint64_t seen = core_.compare_exchange(word_, s, want);
      if (seen == s) {
        admit_exclusives(want);
        break;
      }
      s = seen;
    }
    TOMBOLO_TRY(node_.wait_granted());
    if (const std::uint64_t next = node_.next(); next != 0) {
      core_.fetch_add(word_, lock_alls.one());
      node_.grant(next);
    }
    return {};
  }

  void admit_exclusives(std::uint64_t s) {
    while (lock_alls.get(s) == 0 && waiting_exclusives.get(s) != 0) {
      const std::uint64_t seen = core_.compare_exchange(word_, s, waiting_exclusives.set(s, 0));
      if (seen == s) return node_.grant(waiting_exclusives.get(s));
      s = seen;
    }
  }

  // Counts the first one; it counts the next.
  void admit_lock_alls(std::uint64_t s) {
    while (exclusives.get(s) == 0 && waiting_lock_alls.get(s) != 0) {
      const std::uint64_t want = waiting_lock_alls.set(s, 0) + lock_alls.one();
      const std::uint64_t seen = core_.compare_exchange(word_, s, want);
      if (seen == s) return node_.grant(waiting_lock_alls.get(s));
      s = seen;
    }
  }

  C& core_;
  typename C::Word word_;
  WaitNode<C>& node_;
};

}  // namespace tombolo::sync
