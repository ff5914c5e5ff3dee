// SPDX-License-Identifier: Apache-2.0
// Purpose: the words on which a core waits in a queue or stack of waiting cores, at its own home:
// the node of Mellor-Crummey and Scott's locks (001 section 4.3, figure 4).
//
//   word 0  granted   1 once the core may go on
//   word 1  next      the core it must take care of afterwards (0: none), as the lock defines
//
// Invariants: WN1 a core waits for one thing at a time and a lock releases the node before its lock
//                 call returns. Hence one node per core serves all locks of a window: memory does
//                 not grow with the number of cores, nor with the locks held.
//             WN2 the words are only stored and loaded, never changed by atomics: by the owner
//                 before it makes the node known, then each word by one other core at most.
// `arm` needs no fence: the owner makes the node known by an atomic, and atomics come after earlier
// stores (R3).
// Thread safety: one call at a time per object.
#pragma once

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/lone_word.h"

namespace tombolo::sync {

template <machine::Core C>
class WaitNode {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset words = 0;
  };
  static Layout take(machine::SyncLayout& layout) { return {.words = layout.take_lines(2)}; }

  WaitNode(C& core, Layout layout)
      : core_(core),
        layout_(layout),
        granted_(core.word({core.self(), layout.words})),
        next_(core.word({core.self(), layout.words + 8})) {}

  // This core's name in lock words.
  std::uint64_t name() const { return std::uint64_t{core_.self()} + 1; }

  // Prepares the node of this core.
  void arm(std::uint64_t next) {
    store_lone(core_, granted_, 0);
    store_lone(core_, next_, next);
  }
  Status wait_granted() { return core_.wait_until(granted_, is_set); }
  std::uint64_t next() { return core_.load(next_); }
  Status wait_linked() { return core_.wait_until(next_, is_set); }

  // Lets the core of that name go on.
  void grant(std::uint64_t name) { set(name, layout_.words, 1); }
  // Tells the core `name` the core it must take care of.
  void link(std::uint64_t name, std::uint64_t next) { set(name, layout_.words + 8, next); }

 private:
  static bool is_set(std::uint64_t v) { return v != 0; }
  void set(std::uint64_t name, machine::Offset at, std::uint64_t v) {
    const auto home = static_cast<Home>(name - 1);
    store_lone(core_, core_.word({home, at}), v);
    core_.notify(home);
  }

  C& core_;
  Layout layout_;
  typename C::Word granted_;
  typename C::Word next_;
};

// The tools of a waiting core: it waits for one thing at a time (WN1).
template <machine::Core C>
struct Waiting {
  WaitNode<C> node;
  Backoff<C> backoff;  // where it must poll at another home
};

}  // namespace tombolo::sync
