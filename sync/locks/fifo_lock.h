// SPDX-License-Identifier: Apache-2.0
// Purpose: readers-writer locks in the order of arrival, as message-based implementations give them
// (001 section 4.4): neighbouring readers share, no core overtakes. After the fair queue locks of
// Mellor-Crummey and Scott, PPoPP 1991, section 2, with the ends of the queue and the counts in one
// word.
//
//   word   members of group 0 | members of group 1 | first | kind of first | last
//
// A lock admits any number of members of group 0, or members of group 1: one (a readers-writer
// lock), or any number (the gate between lock-alls and cores with exclusive locks). To enter, a
// core counts itself; if the other group is in or a core waits, it takes that back and joins the
// queue in the same atomic. The core that makes the first one admissible grants it; the granted one
// leaves the queue, names its successor, and grants that too if it may.
//
// Every core waits on a word of its own home. Accesses without contention: shared 1 + 1, exclusive
// 1 + 1 and a load (2 + 2 once the window uses lock-all), lock-all 1 + 1. Memory: 3 lines per home
// (gated_locks.h); nodes are free once the lock is granted (WN1).
//
// Invariants: FQ1 a group is counted only in a state in which the other is absent (and, for a limit
//                 of one, itself), but for failed attempts, which have not entered.
//             FQ2 arrival is the atomic that enters or joins. It enters only if no core waits, and
//                 the queue is granted from its first to its last. So no core overtakes, but for
//                 FQ4.
//             FQ3 kind is 0 while `first` has been granted and has not left the queue: no core is
//                 granted twice, and an arriving core still sees that another waits.
//             FQ4 a core that already holds a lock of the window enters the gate, or a lock as a
//                 reader, at once: it counts itself and waits for the other group to leave. Were it
//                 to queue behind one that waits for a core that waits for this one, all would be
//                 stuck (GL4 of gated_locks.h). So a core that waits in the gate's queue holds
//                 nothing, and the gate closes no cycle of waiting.
//             FQ5 a core that lowers a count settles: it grants the first if that may enter now.
// A change of the word is a compare_exchange while others change it too: arrival is lock-free, not
// wait-free.
// Thread safety: that of gated_locks.h.
#pragma once

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/locks/gated_locks.h"
#include "sync/locks/packed_word.h"
#include "sync/locks/wait_node.h"

namespace tombolo::sync {

enum class Group : std::uint8_t { zero = 0, one = 1 };

template <machine::Core C>
class FifoGroupLock {
 public:
  using Word = typename C::Word;

  // `only_one`: at most one member of group 1 at a time.
  FifoGroupLock(C& core, Waiting<C>& waiting, bool only_one)
      : core_(core), node_(waiting.node), backoff_(waiting.backoff), only_one_(only_one) {}

  Status enter(Word word, Group group) {
    const std::uint64_t s = core_.fetch_add(word, count(group).one());
    if (first.get(s) == 0 && admissible(s, group)) [[likely]]
      return {};
    return queue(word, group, s + count(group).one());
  }

  // For a core that holds other locks (FQ4). Polls, since the queue is no place for it.
  Status enter_at_once(Word word, Group group) {
    const Group other = group == Group::zero ? Group::one : Group::zero;
    std::uint64_t s = core_.fetch_add(word, count(group).one());
    backoff_.reset();
    for (; has(s, other); s = core_.load(word)) {
      if (Status error = backoff_.pause(); !error.ok()) {
        leave(word, group);
        return error;
      }
    }
    return {};
  }

  // Enters if that needs no wait (callers.h); `at_once` as in enter_at_once.
  bool try_enter(Word word, Group group, bool at_once) {
    const Group other = group == Group::zero ? Group::one : Group::zero;
    for (std::uint64_t s = core_.load(word);;) {
      if (at_once ? has(s, other) : first.get(s) != 0 || !admissible(s, group)) return false;
      const std::uint64_t seen = core_.compare_exchange(word, s, s + count(group).one());
      if (seen == s) return true;
      s = seen;
    }
  }

  void leave(Word word, Group group) {
    const std::uint64_t one = count(group).one();
    const std::uint64_t s = core_.fetch_add(word, ~one + 1) - one;
    if (kind.get(s) != 0) [[unlikely]]
      settle(word, s);
  }

  // For tests: the last core of the queue; meaningless if it is empty.
  static machine::Home last_of(std::uint64_t s) {
    return static_cast<machine::Home>(last.get(s) - 1);
  }

  bool has(std::uint64_t s, Group group) const { return count(group).get(s) != 0; }

 private:
  static constexpr Field first{2 * core_bits, core_bits};
  static constexpr Field kind{3 * core_bits, 2};  // 0, or 1 + the group of `first`
  static constexpr Field last{3 * core_bits + 2, core_bits};
  static constexpr unsigned kind_shift = 32;  // in a node's `next`: name, and kind above it
  static constexpr Field count(Group group) {
    return {group == Group::zero ? 0 : core_bits, core_bits};
  }
  static constexpr std::uint64_t kind_of(Group group) {
    return 1 + static_cast<std::uint64_t>(group);
  }

  bool admissible(std::uint64_t s, Group group) const {
    if (group == Group::zero) return !has(s, Group::one);
    return !has(s, Group::zero) && !(only_one_ && has(s, Group::one));
  }

  // `s` holds this core's count, to be taken back if it has to wait.
  Status queue(Word word, Group group, std::uint64_t s) {
    const std::uint64_t me = node_.name();
    for (;;) {
      std::uint64_t want = s - count(group).one();
      const std::uint64_t before = last.get(want);
      if (before == 0 && admissible(want, group)) return {};  // the way is free: the count stands
      node_.arm(0);
      want = last.set(want, me);
      if (before == 0) want = kind.set(first.set(want, me), kind_of(group));
      const std::uint64_t seen = core_.compare_exchange(word, s, want);
      if (seen == s) {
        if (before != 0) node_.link(before, me | (kind_of(group) << kind_shift));
        settle(word, want);
        break;
      }
      s = seen;
    }
    TOMBOLO_TRY(node_.wait_granted());
    return leave_queue(word);
  }

  // By the granted first: makes its successor the first, or empties the queue.
  Status leave_queue(Word word) {
    for (std::uint64_t s = core_.load(word);;) {
      std::uint64_t want = last.set(first.set(s, 0), 0);
      if (last.get(s) != node_.name()) {
        TOMBOLO_TRY(node_.wait_linked());
        const std::uint64_t next = node_.next();
        want = first.set(s, next & ((std::uint64_t{1} << kind_shift) - 1));
        want = kind.set(want, next >> kind_shift);
      }
      const std::uint64_t seen = core_.compare_exchange(word, s, want);
      if (seen == s) {
        settle(word, want);
        return {};
      }
      s = seen;
    }
  }

  // Grants the first if it may enter.
  void settle(Word word, std::uint64_t s) {
    while (kind.get(s) != 0) {
      const auto group = static_cast<Group>(kind.get(s) - 1);
      if (!admissible(s, group)) return;
      const std::uint64_t want = kind.set(s, 0) + count(group).one();
      const std::uint64_t seen = core_.compare_exchange(word, s, want);
      if (seen == s) return node_.grant(first.get(s));
      s = seen;
    }
  }

  C& core_;
  WaitNode<C>& node_;
  Backoff<C>& backoff_;
  bool only_one_;
};

// The locks of the targets: readers are group 0, the writer is group 1.
template <machine::Core C>
class FifoTargets {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset word = 0;
  };
  static Layout take(machine::SyncLayout& layout) { return {.word = layout.take_lines(1)}; }

  FifoTargets(C& core, Layout layout, Waiting<C>& waiting)
      : core_(core), layout_(layout), lock_(core, waiting, /*only_one=*/true) {}

  Status lock_shared(Home target, bool holding) {
    return holding ? lock_.enter_at_once(word(target), Group::zero)
                   : lock_.enter(word(target), Group::zero);
  }
  void unlock_shared(Home target) { lock_.leave(word(target), Group::zero); }
  Status lock_exclusive(Home target) { return lock_.enter(word(target), Group::one); }
  void unlock_exclusive(Home target) { lock_.leave(word(target), Group::one); }
  bool has_exclusive(Home target) { return lock_.has(core_.load(word(target)), Group::one); }
  bool try_shared(Home target, bool holding) {
    return lock_.try_enter(word(target), Group::zero, holding);
  }
  bool try_exclusive(Home target) { return lock_.try_enter(word(target), Group::one, false); }

 private:
  typename C::Word word(Home target) { return core_.word({target, layout_.word}); }

  C& core_;
  Layout layout_;
  FifoGroupLock<C> lock_;
};

// Lock-alls are group 0, cores with exclusive locks group 1.
template <machine::Core C>
class FifoGate {
 public:
  FifoGate(C& core, typename C::Word word, Waiting<C>& waiting)
      : word_(word), lock_(core, waiting, /*only_one=*/false) {}

  Status enter_exclusive(bool holding) {
    return holding ? lock_.enter_at_once(word_, Group::one) : lock_.enter(word_, Group::one);
  }
  void leave_exclusive() { lock_.leave(word_, Group::one); }
  Status enter_all() { return lock_.enter(word_, Group::zero); }
  bool try_exclusive(bool holding) { return lock_.try_enter(word_, Group::one, holding); }
  bool try_all() { return lock_.try_enter(word_, Group::zero, false); }
  void leave_all() { lock_.leave(word_, Group::zero); }

 private:
  typename C::Word word_;
  FifoGroupLock<C> lock_;
};

template <machine::Core C>
class FifoLocks : public GatedLocks<C, FifoTargets<C>, FifoGate<C>> {
  using GatedLocks<C, FifoTargets<C>, FifoGate<C>>::GatedLocks;
};

struct FifoFamily {
  template <machine::Core C>
  using Locks = FifoLocks<C>;
  static constexpr LockFamilyTraits traits{.name = "fifo", .order = LockOrder::arrival};
};

}  // namespace tombolo::sync
