// SPDX-License-Identifier: Apache-2.0
// Purpose: queue-based readers-writer locks with writer preference (MCS-WP): Mellor-Crummey and
// Scott, PPoPP 1991, section 3; 001 section 4.3, figure 4; with the lock-all that 001 section 7.2
// leaves out.
//
//   state of a target   readers | next writer | waiting readers | writer active
//   tail of a target    last core in the queue of writers
//
//   reader   counts itself; if a writer is active or waiting, takes that back and pushes itself on
//            the stack of waiting readers
//   writer   free lock: sets "active". Else joins the queue; its first member is "next writer" and
//            gets the lock from the last reader or the leaving writer. Granted, it leaves the queue
//            and names its successor.
//   leaving writer    hands the lock to the next writer; only if there is none, to the readers
//
// Every core waits on a word of its own home. Accesses without contention: shared 1 + 1, exclusive
// 1 + 1 and a load (2 + 2 once the window uses lock-all), lock-all 1 + 1. Memory: 3 lines per home
// (gated_locks.h), since nodes are free once the lock is granted (WN1): the original's writers keep
// theirs in the queue until they release, and a core that may hold locks of n targets would need n
// nodes.
//
// Invariants: WP1 "active" is set only in a state without readers; a reader that has counted itself
//                 enters in a state without active writer. Each by one atomic on the state.
//             WP2 readers are on the stack only while a writer is active or next: they push in such
//                 a state, and the core that clears "active" with no next writer takes the stack.
//             WP3 next writer is the first of the queue: set by itself if the queue was empty, else
//                 by its predecessor, which has the lock then. So it is 0 when it is set, and
//                 adding sets it.
//             WP4 the core that leaves a state with a next writer and no core in, grants: the last
//                 reader (failed attempts included), or the next writer itself when it has set
//                 itself.
//             WP5 bound: once a writer is next, every new reader waits. Before it enter at most the
//                 readers that are in and those already granted through the stack: each other core
//                 once. Later writers queue behind it. The exception are readers that hold other
//                 locks of the window (GL4 of gated_locks.h).
//             WP6 a push onto an equal state is right even if the top was away meanwhile: the stack
//                 is only taken whole.
// Readers starve while writers come without end: that is the preference.
// Lock-all: one atomic on a gate that prefers exclusive locks too (lock_all_gate.h). A shared lock
// on every target would cost n atomics and, holding some while waiting for others, add deadlocks.
// Thread safety: that of gated_locks.h.
#pragma once

#include "machine/contract.h"
#include "sync/locks/gated_locks.h"
#include "sync/locks/lock_all_gate.h"
#include "sync/locks/packed_word.h"
#include "sync/locks/wait_node.h"

namespace tombolo::sync {

// The locks of the targets, without lock-all.
template <machine::Core C>
class WriterPreferenceTargets {
 public:
  using Word = typename C::Word;
  using Home = machine::Home;
  struct Layout {
    machine::Offset words = 0;
  };
  static Layout take(machine::SyncLayout& layout) { return {.words = layout.take_lines(2)}; }

  WriterPreferenceTargets(C& core, Layout layout, Waiting<C>& waiting)
      : core_(core), layout_(layout), node_(waiting.node), backoff_(waiting.backoff) {}

  Status lock_shared(Home target, bool holding) {
    const Word state = state_word(target);
    const std::uint64_t s = core_.fetch_add(state, readers.one());
    if (!has_writer(s)) [[likely]]
      return {};
    return holding ? wait_for_active(target) : queue_reader(state, s + readers.one());
  }
  void unlock_shared(Home target) {
    const Word state = state_word(target);
    const std::uint64_t s = core_.fetch_add(state, minus(readers.one())) - readers.one();
    if (next_writer.get(s) != 0) [[unlikely]]
      admit_writer(state, s);
  }

  Status lock_exclusive(Home target) {
    if (core_.compare_exchange(state_word(target), 0, active) == 0) [[likely]]
      return {};
    return queue_writer(target);
  }
  void unlock_exclusive(Home target) {
    const Word state = state_word(target);
    const std::uint64_t s = core_.compare_exchange(state, active, 0);
    if (s != active) [[unlikely]]
      hand_over(state, s);
  }
  bool has_exclusive(Home target) { return (core_.load(state_word(target)) & active) != 0; }

  // The lock, if it is free for a caller that does not wait (callers.h).
  bool try_shared(Home target, bool holding) {
    const Word state = state_word(target);
    const std::uint64_t in_the_way = holding ? active : active | next_writer.mask();
    for (std::uint64_t s = core_.load(state); (s & in_the_way) == 0;) {
      const std::uint64_t seen = core_.compare_exchange(state, s, s + readers.one());
      if (seen == s) return true;
      s = seen;
    }
    return false;
  }
  bool try_exclusive(Home target) {
    return core_.compare_exchange(state_word(target), 0, active) == 0;
  }

  // For tests: true if a writer waits that every new reader must let pass.
  static bool writer_waits(std::uint64_t state) { return next_writer.get(state) != 0; }

 private:
  static constexpr Field readers{0, core_bits};
  static constexpr Field next_writer{core_bits, core_bits};
  static constexpr Field waiting_readers{2 * core_bits, core_bits};
  static constexpr std::uint64_t active = std::uint64_t{1} << (3 * core_bits);
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }
  static constexpr bool has_writer(std::uint64_t s) {
    return (s & (active | next_writer.mask())) != 0;
  }
  Word state_word(Home target) { return core_.word({target, layout_.words}); }
  Word tail_word(Home target) { return core_.word({target, layout_.words + 8}); }

  // By a reader that has counted itself and holds other locks (GL4): only the active writer, if
  // there is one, goes first.
  Status wait_for_active(Home target) {
    backoff_.reset();
    while (has_exclusive(target)) {
      if (Status error = backoff_.pause(); !error.ok()) {
        unlock_shared(target);
        return error;
      }
    }
    return {};
  }

  // `s` holds this core's count as a reader, to be taken back if it has to wait.
  Status queue_reader(Word state, std::uint64_t s) {
    for (;;) {
      if (!has_writer(s)) return {};
      node_.arm(waiting_readers.get(s));
      const std::uint64_t want = waiting_readers.set(s - readers.one(), node_.name());
      const std::uint64_t seen = core_.compare_exchange(state, s, want);
      if (seen == s) {
        admit_writer(state, want);  // the count may have kept a writer out (WP4)
        break;
      }
      s = seen;
    }
    TOMBOLO_TRY(node_.wait_granted());
    // The core that granted this reader has counted it; it does the same for the next of the stack.
    if (const std::uint64_t next = node_.next(); next != 0) {
      core_.fetch_add(state, readers.one());
      node_.grant(next);
    }
    return {};
  }

  Status queue_writer(Home target) {
    const Word state = state_word(target);
    const Word tail = tail_word(target);
    node_.arm(0);
    if (const std::uint64_t before = core_.exchange(tail, node_.name()); before != 0) {
      node_.link(before, node_.name());
    } else {
      const std::uint64_t me = next_writer.one() * node_.name();
      admit_writer(state, core_.fetch_add(state, me) + me);
    }
    TOMBOLO_TRY(node_.wait_granted());
    if (node_.next() == 0) {
      if (core_.compare_exchange(tail, node_.name(), 0) == node_.name()) return {};
      TOMBOLO_TRY(node_.wait_linked());  // a core is between its exchange and its link
    }
    core_.fetch_add(state, next_writer.one() * node_.next());
    return {};
  }

  // Gives the lock to the next writer if no core is in.
  void admit_writer(Word state, std::uint64_t s) {
    while (readers.get(s) == 0 && (s & active) == 0 && next_writer.get(s) != 0) {
      const std::uint64_t seen = core_.compare_exchange(state, s, next_writer.set(s, 0) | active);
      if (seen == s) return node_.grant(next_writer.get(s));
      s = seen;
    }
  }

  // Called by the active writer.
  void hand_over(Word state, std::uint64_t s) {
    for (;;) {
      const std::uint64_t writer = next_writer.get(s);
      const std::uint64_t reader = waiting_readers.get(s);
      std::uint64_t want = s - active;  // the last of the counted readers grants the next writer
      std::uint64_t granted = 0;
      if (writer == 0) {
        want = waiting_readers.set(want, 0) + (reader != 0 ? readers.one() : 0);
        granted = reader;
      } else if (readers.get(s) == 0) {
        want = next_writer.set(s, 0);  // stays active
        granted = writer;
      }
      const std::uint64_t seen = core_.compare_exchange(state, s, want);
      if (seen == s) {
        if (granted != 0) node_.grant(granted);
        return;
      }
      s = seen;
    }
  }

  C& core_;
  Layout layout_;
  WaitNode<C>& node_;
  Backoff<C>& backoff_;
};

template <machine::Core C>
class WriterPreferenceLocks : public GatedLocks<C, WriterPreferenceTargets<C>, LockAllGate<C>> {
  using GatedLocks<C, WriterPreferenceTargets<C>, LockAllGate<C>>::GatedLocks;
};

struct WriterPreferenceFamily {
  template <machine::Core C>
  using Locks = WriterPreferenceLocks<C>;
  static constexpr LockFamilyTraits traits{.name = "writer-preference",
                                           .order = LockOrder::writers_first};
};

}  // namespace tombolo::sync
