// SPDX-License-Identifier: Apache-2.0
// Purpose: the dissemination barrier (Hensgen, Finkel and Manber 1988; Mellor-Crummey and Scott,
// TOCS 1991, algorithm 9): in round r core i signals core i + 2^r (mod n) and waits for i - 2^r.
// After ceil(log2 n) rounds every core has heard, directly or not, of every other.
//
// Per core and barrier: ceil(log2 n) remote stores, and as many waits on words of its own home; for
// two cores one of each. Memory: ceil(log2 n) lines per home.
//
// Invariants: DI1 a flag has one writer, which stores the number of its current barrier; the reader
//                 waits for its own number or a larger one. Numbers only grow, so no flag is ever
//                 reset and a fast writer may be ahead by one (it cannot be by two: its next
//                 barrier needs the reader).
//             DI2 a core stores its round r + 1 flag after it has loaded its round r flag (R3 keeps
//                 loads and later stores in order), so the flag passes on all earlier events: data
//                 that any core published or drained before it arrived is in memory when any core
//                 leaves (R4), and a refresh after the barrier sees it (R5). No fence: the wait of
//                 a round may overtake its store without harm, since it concerns another pair.
// Thread safety: one call at a time per object.
#pragma once

#include <bit>

#include "machine/contract.h"
#include "sync/lone_word.h"

namespace tombolo::sync {

template <machine::Core C>
class DisseminationBarrier {
 public:
  struct Layout {
    machine::Offset flags = 0;  // one line for each round
  };
  static Layout take(machine::SyncLayout& layout, machine::Home cores) {
    const unsigned lines = rounds(cores);
    return {.flags = lines == 0 ? 0 : layout.take_lines(lines * words_per_line)};
  }

  DisseminationBarrier(C& core, Layout layout) : DisseminationBarrier(core, layout, core.cores()) {}
  // Of the first `members` cores.
  DisseminationBarrier(C& core, Layout layout, machine::Home members)
      : core_(core), layout_(layout), members_(members) {}

  [[gnu::hot]] Status arrive_and_wait() {
    ++number_;
    const machine::Home n = members_;
    for (unsigned round = 0; round < rounds(n); ++round) {
      const auto step = std::uint64_t{1} << round;
      const auto peer = static_cast<machine::Home>((core_.self() + step) % n);
      store_lone(core_, flag(peer, round), number_);
      core_.notify(peer);
      TOMBOLO_TRY(core_.wait_until(flag(core_.self(), round),
                                   [want = number_](std::uint64_t v) { return v >= want; }));
    }
    return {};
  }

 private:
  static constexpr std::size_t words_per_line = 8;
  static constexpr unsigned rounds(machine::Home n) {
    return n <= 1 ? 0 : static_cast<unsigned>(std::bit_width(n - 1));
  }
  typename C::Word flag(machine::Home home, unsigned round) {
    return core_.word({home, layout_.flags + round * words_per_line * 8});
  }

  C& core_;
  Layout layout_;
  machine::Home members_;
  std::uint64_t number_ = 0;
};

}  // namespace tombolo::sync
