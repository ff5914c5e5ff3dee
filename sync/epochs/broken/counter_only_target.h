// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the validator of sync/epochs only: Open MPI's shared-memory
// protocol of 1.7.5 to 1.8 (000 section 3.3.3, figure 3.6). The match vector is replaced by a
// counter: each post adds one at the origin, and the origin goes on when the counter has reached
// the size of its group.
//
// The error: a post of a target of a later epoch counts as if it came from a member of the current
// group. The origin then communicates with a target that is not ready, and adds to a completion
// counter that this target resets when it posts: it waits for ever.
// Thread safety: one call at a time per object.
#pragma once

#include <span>

#include "machine/contract.h"

namespace tombolo::sync::broken {

template <machine::Core C>
class CounterOnlyTarget {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset posts = 0;
    machine::Offset completions = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home /*cores*/) {
    return {.posts = layout.take_lines(1), .completions = layout.take_lines(1)};
  }

  CounterOnlyTarget(C& core, Layout layout) : core_(core), layout_(layout) {}

  void post(std::span<const Home> origins) {
    core_.store(word(core_.self(), layout_.completions), ~std::uint64_t{origins.size()} + 1);
    for (const Home origin : origins) {
      core_.fetch_add(word(origin, layout_.posts), 1);
      core_.notify(origin);
    }
  }
  Status wait() {
    return core_.wait_until(word(core_.self(), layout_.completions),
                            [](std::uint64_t v) { return v == 0; });
  }

  // An immediate protocol: waits for the whole group.
  Status start(std::span<const Home> targets) {
    const auto posts = word(core_.self(), layout_.posts);
    TOMBOLO_TRY(core_.wait_until(posts, [n = targets.size()](std::uint64_t v) { return v >= n; }));
    core_.fetch_add(posts, ~std::uint64_t{targets.size()} + 1);
    return {};
  }
  Status complete(std::span<const Home> targets) {
    for (const Home target : targets) {
      core_.fetch_add(word(target, layout_.completions), 1);
      core_.notify(target);
    }
    return {};
  }

 private:
  typename C::Word word(Home home, machine::Offset at) { return core_.word({home, at}); }

  C& core_;
  Layout layout_;
};

}  // namespace tombolo::sync::broken
