// SPDX-License-Identifier: Apache-2.0
// Purpose: the queue-based readers-writer lock with writer preference as Mellor-Crummey and Scott
// publish it (PPoPP 1991, section 3) and 001 section 4.3 implements it, to be measured beside ours
// (sync/locks/writer_preference_lock.h).
//
//   state of a target   interested writer | no entering readers | waiting readers | reader count
//   and                 readers: newest of the list   tail: last writer   head: writer to be let in
//   node of a core      blocked | next, at its own home, polled there
//
//   reader   joins the list. The first of a group says that readers wait and, if there is no
//            writer, lets the group in. Let in, it counts and lets in the next of the list.
//   writer   joins the queue. Its first one says that a writer is interested and, if no reader is
//            in or about to be let in, lets itself in.
//   leaving  the last reader lets the writer in; a writer lets in the next one of the queue, and
//            the readers only if there is none
//
// All changes of the words of a target are atomics, as the machine has them (001 section 5.5).
//
// Invariants: MS1 a flag is clear when it is set and set when it is cleared, so that each atomic or
//                 and and of the original is an addition: a group of readers has one first, which
//                 says so before the list is taken; of the writers only the first of the queue sets
//                 flags, and only the last one clears them.
//             MS2 between "waiting readers" and the count of a group that lets itself in, a writer
//                 may become interested. It waits; the group says for it that no more readers
//                 enter.
//             MS3 a writer's node stays in the queue until it leaves. Hence a core holds one lock
//                 of this object at a time (checked).
// After a failed lock the core is still in a queue: the locks can no longer be used.
// Thread safety: one call at a time per object.
#pragma once

#include "base/check.h"
#include "machine/contract.h"
#include "sync/locks/lock_kind.h"
#include "sync/lone_word.h"

namespace tombolo::experiments::published {

template <machine::Core C>
class McsWriterPreference {
 public:
  using Home = machine::Home;
  using Word = typename C::Word;
  struct Layout {
    machine::Offset lock = 0;
    machine::Offset node = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home /*cores*/) {
    return {.lock = layout.take_lines(4), .node = layout.take_lines(2)};
  }

  McsWriterPreference(C& core, Layout layout) : core_(core), layout_(layout) {}

  Status lock(sync::Access access, Home target) {
    TOMBOLO_CHECK(!held_, "published lock: core {} asks for lock {} and holds another",
                  core_.self(), target);
    held_ = true;
    return access == sync::Access::shared ? start_read(target) : start_write(target);
  }
  Status unlock(sync::Access access, Home target) {
    held_ = false;
    if (access == sync::Access::exclusive) return end_write(target);
    end_read(target);
    return {};
  }

 private:
  static constexpr std::uint64_t interested = 1;  // a writer wants in, or is in
  static constexpr std::uint64_t closed = 2;      // and no more readers are about to enter
  static constexpr std::uint64_t waiting = 4;     // readers wait
  static constexpr std::uint64_t reader = 8;      // one that is in
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }

  Word state(Home target) { return core_.word({target, layout_.lock}); }
  Word readers(Home target) { return core_.word({target, layout_.lock + 8}); }
  Word tail(Home target) { return core_.word({target, layout_.lock + 16}); }
  Word head(Home target) { return core_.word({target, layout_.lock + 24}); }

  // A core's name in lock words; 0 names none.
  std::uint64_t me() const { return std::uint64_t{core_.self()} + 1; }
  Word blocked(std::uint64_t name) {
    return core_.word({static_cast<Home>(name - 1), layout_.node});
  }
  Word next(std::uint64_t name) {
    return core_.word({static_cast<Home>(name - 1), layout_.node + 8});
  }
  void let_in(std::uint64_t name) { sync::store_lone(core_, blocked(name), 0); }
  Status wait_until_let_in() {
    return core_.wait_until(blocked(me()), [](std::uint64_t v) { return v == 0; });
  }

  Status start_read(Home target) {
    sync::store_lone(core_, blocked(me()), 1);
    const std::uint64_t before = core_.exchange(readers(target), me());
    sync::store_lone(core_, next(me()), before);
    if (before == 0 && (core_.fetch_add(state(target), waiting) & (interested | closed)) == 0)
      let_readers_in(target);
    TOMBOLO_TRY(wait_until_let_in());
    if (const std::uint64_t older = core_.load(next(me())); older != 0) {
      core_.fetch_add(state(target), reader);
      let_in(older);
    }
    return {};
  }

  void let_readers_in(Home target) {
    const std::uint64_t s = core_.fetch_add(state(target), reader - waiting);
    if ((s & interested) != 0) core_.fetch_add(state(target), closed);  // MS2
    let_in(core_.exchange(readers(target), 0));
  }

  void end_read(Home target) {
    const std::uint64_t s = core_.fetch_add(state(target), minus(reader));
    if ((s & ~waiting) == (reader | interested | closed)) let_in(core_.load(head(target)));
  }

  Status start_write(Home target) {
    sync::store_lone(core_, blocked(me()), 1);
    sync::store_lone(core_, next(me()), 0);
    const std::uint64_t before = core_.exchange(tail(target), me());
    if (before == 0)
      set_next_writer(target, me());
    else
      sync::store_lone(core_, next(before), me());
    return wait_until_let_in();
  }

  void set_next_writer(Home target, std::uint64_t writer) {
    sync::store_lone(core_, head(target), writer);
    if ((core_.fetch_add(state(target), interested) & waiting) != 0) return;  // MS2
    if (core_.fetch_add(state(target), closed) < reader) let_in(writer);
  }

  Status end_write(Home target) {
    if (const std::uint64_t successor = core_.load(next(me())); successor != 0) {
      let_in(successor);
      return {};
    }
    if ((core_.fetch_add(state(target), minus(interested | closed)) & waiting) != 0)
      let_readers_in(target);
    if (core_.compare_exchange(tail(target), me(), 0) == me()) return {};
    // Another writer is between its exchange and its link.
    TOMBOLO_TRY(core_.wait_until(next(me()), [](std::uint64_t v) { return v != 0; }));
    set_next_writer(target, core_.load(next(me())));
    return {};
  }

  C& core_;
  Layout layout_;
  bool held_ = false;
};

}  // namespace tombolo::experiments::published
