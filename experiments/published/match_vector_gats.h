// SPDX-License-Identifier: Apache-2.0
// Purpose: post, start, complete and wait as the thesis publishes them (000 sections 3.4.7 to
// 3.4.9, Algorithms 1 and 2), to be measured beside ours (sync/epochs/active_target.h).
//
//   post       counter := number of origins; for each origin: set my bit in its vector
//   start      keep the targets
//   await      before the first communication with a target: wait for its bit, unless the copy of
//              the vector has it (000 section 3.4.8)
//   complete   for each target: the same (Algorithm 2 shows no copy), and clear it in both
//              then, for each target: subtract 1 from its counter
//   wait       until the own counter is 0
//
// Each change of a vector or of another's counter is one atomic: the register of the owner's core
// is got, one byte read, changed and written uncached, the register cleared. On which machine, and
// thereby how the register is got, the template's argument says. A byte of the thesis is a word
// here, of which eight bits are used: an uncached access to either takes as long.
//
// Invariants: MG1 a bit is 0 when its target sets it, and 1 when the origin clears it, so that both
//                 are additions. The clearing needs the register as well, though Algorithm 2 does
//                 not say so: other targets change the same byte.
//             MG2 a counter is stored to only while no origin may change it: its last one has been
//                 counted, and none has seen a bit of the next post.
//             MG3 the copy has no bit that the vector lacks: only the origin clears, in both.
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
      : core_(core),
        layout_(layout),
        counter_(core.word({core.self(), layout.counter})),
        copy_((std::size_t{core.cores()} + 7) / 8) {}

  Status post(std::span<const Home> origins, windows::Assertions /*promise*/ = {}) {
    sync::store_lone(core_, counter_, origins.size());
    for (const Home origin : origins)
      core_.fetch_add(byte_of(core_.self(), origin), bit_of(core_.self()));
    return {};
  }

  Status start(std::span<const Home> targets, windows::Assertions /*promise*/ = {}) {
    started_.assign(targets.begin(), targets.end());
    return {};
  }

  Status await(Home target) {
    if ((copy_[target / 8] & bit_of(target)) != 0) return {};
    return core_.wait_until(byte_of(target, core_.self()), [&](std::uint64_t v) {
      copy_[target / 8] = v;
      return (v & bit_of(target)) != 0;
    });
  }

  Status complete() {
    for (const Home target : started_) {
      TOMBOLO_TRY(await(target));
      core_.fetch_add(byte_of(target, core_.self()), minus(bit_of(target)));
      copy_[target / 8] &= ~bit_of(target);
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
  std::vector<std::uint64_t> copy_;  // MG3
};

}  // namespace tombolo::experiments::published
