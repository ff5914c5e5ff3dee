// SPDX-License-Identifier: Apache-2.0
// Purpose: post, start, complete and wait as the thesis publishes them (000 sections 3.4.7 to
// 3.4.9, Algorithms 1 and 2), to be measured beside ours (sync/epochs/active_target.h).
//
//   post       counter := number of origins; for each origin: set my bit in its vector
//   start      keep the targets
//   await      before the first communication with a target: wait for its bit
//   complete   for each target: wait for its bit unless it was seen, clear it
//              then, for each target: subtract 1 from its counter
//   wait       until the own counter is 0
//
// Each change of a vector or of another's counter is one atomic: the register of the owner's core
// is got, one byte read, changed and written uncached, the register cleared. On which machine, and
// thereby how the register is got, the template's argument says. A byte of the thesis is a word
// here, of which eight bits are used: an uncached access to either takes as long.
//
// Invariants: P1 a bit is 0 when its target sets it, and 1 when the origin clears it, so that both
//                are additions. The clearing needs the register as well, though Algorithm 2 does
//                not say so: other targets change the same byte.
//             P2 a counter is stored to only while no origin may change it: its last one has been
//                counted, and none has seen a bit of the next post.
// Thread safety: one call at a time per object.
#pragma once

#include <span>
#include <vector>

#include "machine/contract.h"
#include "sync/lone_word.h"
#include "windows/engine.h"

namespace tombolo::experiments::published {

template <machine::Core C>
class MatchVectorGats {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset vector = 0;
    machine::Offset counter = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.vector = layout.take_lines((std::size_t{cores} + 7) / 8),
            .counter = layout.take_lines(1)};
  }

  MatchVectorGats(C& core, Layout layout)
      : core_(core), layout_(layout), counter_(core.word({core.self(), layout.counter})) {}

  Status post(std::span<const Home> origins, windows::Assertions /*promise*/ = {}) {
    sync::store_lone(core_, counter_, origins.size());
    for (const Home origin : origins)
      core_.fetch_add(byte_of(core_.self(), origin), bit_of(core_.self()));
    return {};
  }

  Status start(std::span<const Home> targets, windows::Assertions /*promise*/ = {}) {
    started_.assign(targets.begin(), targets.end());
    seen_.assign(started_.size(), false);
    return {};
  }

  // 000 section 3.4.8, with its cached copy of the vector.
  Status await(Home target) {
    for (std::size_t n = 0; n < started_.size(); ++n)
      if (started_[n] == target) return await_bit(n);
    return {};
  }

  Status complete() {
    for (std::size_t n = 0; n < started_.size(); ++n) {
      TOMBOLO_TRY(await_bit(n));
      core_.fetch_add(byte_of(started_[n], core_.self()), minus(bit_of(started_[n])));
    }
    for (const Home target : started_)
      core_.fetch_add(core_.word({target, layout_.counter}), minus(1));
    started_.clear();
    return {};
  }

  Status wait() {
    return core_.wait_until(counter_, [](std::uint64_t v) { return v == 0; });
  }

 private:
  Status await_bit(std::size_t n) {
    if (seen_[n]) return {};
    const std::uint64_t bit = bit_of(started_[n]);
    TOMBOLO_TRY(core_.wait_until(byte_of(started_[n], core_.self()),
                                 [bit](std::uint64_t v) { return (v & bit) != 0; }));
    seen_[n] = true;
    return {};
  }
  static constexpr std::uint64_t bit_of(Home home) { return std::uint64_t{1} << (home % 8); }
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }
  // That of `target` in the vector of `origin`.
  typename C::Word byte_of(Home target, Home origin) {
    return core_.word({origin, layout_.vector + target / 8 * 8});
  }

  C& core_;
  Layout layout_;
  typename C::Word counter_;
  std::vector<Home> started_;
  std::vector<bool> seen_;  // by place in started_
};

}  // namespace tombolo::experiments::published
