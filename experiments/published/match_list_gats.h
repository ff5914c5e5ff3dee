// SPDX-License-Identifier: Apache-2.0
// Purpose: post, start, complete and wait of the prototype on which the thesis measured where the
// synchronization data should lie (000 section 3.4.5): FoMPI's match list and completion counter
// (000 section 3.3.4), with a linear scan for a free entry instead of FoMPI's protocol for one. It
// is of the immediate class: start blocks.
//
//   post       counter := number of origins; for each origin: my rank into the first free entry of
//              its list
//   start      for each target: scan the own list for its rank again and again, free the entry
//   complete   for each target: subtract 1 from its counter
//   wait       until the own counter is 0
//
// An entry is taken, and a counter changed, by one atomic under the register of its owner's core. A
// scan ends at the entry that it is for; the entries in use are at the list's begin.
//
// The list has an entry for each process, and a scan that finds nothing looks at all of them: the
// thesis leaves both open.
//
// Invariants: ML1 an entry holds 0 or the rank of a target, plus 1. Only its owner frees it, under
//                 the register: a try to take it that fails writes back the value read.
//             ML2 a counter is stored to only while no origin may change it: its last one has been
//                 counted, and none has found the entry of the next post.
// Thread safety: one call at a time per object.
#pragma once

#include <span>
#include <vector>

#include "machine/contract.h"
#include "sync/lone_word.h"
#include "windows/engine.h"

namespace tombolo::experiments::published {

template <machine::Core C>
class MatchListGats {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset list = 0;
    machine::Offset counter = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.list = layout.take_lines(cores), .counter = layout.take_lines(1)};
  }

  MatchListGats(C& core, Layout layout)
      : core_(core), layout_(layout), counter_(core.word({core.self(), layout.counter})) {}

  Status post(std::span<const Home> origins, windows::Assertions /*promise*/ = {}) {
    sync::store_lone(core_, counter_, origins.size());
    for (const Home origin : origins) TOMBOLO_TRY(enter_list(origin));
    return {};
  }

  Status start(std::span<const Home> targets, windows::Assertions /*promise*/ = {}) {
    started_.assign(targets.begin(), targets.end());
    for (const Home target : targets) {
      Home n = 0;
      TOMBOLO_TRY(core_.wait_until(entry(core_.self(), 0), [&](std::uint64_t first) {
        if (first == mark(target)) {
          n = 0;
          return true;
        }
        for (n = 1; n < core_.cores(); ++n)
          if (core_.load(entry(core_.self(), n)) == mark(target)) return true;
        return false;
      }));
      core_.store(entry(core_.self(), n), 0);
    }
    return {};
  }

  // start has waited for all.
  Status await(Home /*target*/) { return {}; }

  Status complete() {
    for (const Home target : started_)
      core_.fetch_add(core_.word({target, layout_.counter}), minus(1));
    started_.clear();
    return {};
  }

  Status wait() {
    return core_.wait_until(counter_, [](std::uint64_t v) { return v == 0; });
  }

 private:
  static constexpr std::uint64_t mark(Home home) { return std::uint64_t{home} + 1; }
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }
  typename C::Word entry(Home owner, Home n) {
    return core_.word({owner, layout_.list + machine::Offset{n} * 8});
  }

  Status enter_list(Home origin) {
    for (Home n = 0; n < core_.cores(); ++n)
      if (core_.load(entry(origin, n)) == 0 &&
          core_.compare_exchange(entry(origin, n), 0, mark(core_.self())) == 0)
        return {};
    return Status::stopped("a match list without a free entry");
  }

  C& core_;
  Layout layout_;
  typename C::Word counter_;
  std::vector<Home> started_;
};

}  // namespace tombolo::experiments::published
