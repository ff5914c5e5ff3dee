// SPDX-License-Identifier: Apache-2.0
// Purpose: the match vector of trigger-only synchronization (000 sections 3.4.4, 3.4.7, 3.4.8): one
// bit for each core, at the home of the origin, by which targets say that they have posted. Bits
// and not a count, since a count cannot tell a member of the start group from a target of a later
// epoch (000 section 3.3.3; sync/epochs/broken/counter_only_target.h shows the result).
//
// Where the thesis sets a bit and the origin clears it, ours alternates: a post changes the bit,
// and each side remembers (in private memory) the value after the last post that it has dealt with.
// That saves the origin a write to a line that the target's cache holds as well.
//
// Invariants: MV1 a bit has one writer, the target of that number, which changes it once per post.
//                 A target posts again to an origin only after the origin has consumed the last
//                 post (the target's wait ends with it), so a bit that differs from the origin's
//                 memory of it means exactly one post.
//             MV2 the writer knows the value of its own bit, so that it changes it by adding or
//                 subtracting: no carry reaches another bit.
//             MV3 the origin's copy of a word may be old, but never shows a post that was consumed
//                 or has not happened; so the copy is looked at first and memory only if it says
//                 no.
// Memory: n bits at each home, 3n bits private: the bits name the partners of an epoch, which no
// fixed number of words can.
// Data: post is an atomic, ordered after the target's publish (R4); a refresh by the origin after
// it saw the bit is as new (R5). Hence no drain, publish or fence here.
// Thread safety: one call at a time per object.
#pragma once

#include <vector>

#include "machine/contract.h"

namespace tombolo::sync {

template <machine::Core C>
class MatchVector {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset words = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.words = layout.take_lines(words(cores))};
  }

  MatchVector(C& core, Layout layout)
      : core_(core),
        layout_(layout),
        posted_by_me_(words(core.cores())),
        consumed_(words(core.cores())),
        copy_(words(core.cores())) {}

  // At the target: tells `origin` that this core has posted.
  void post(Home origin) {
    const std::uint64_t bit = bit_of(core_.self());
    std::uint64_t& mine = posted_by_me_[origin / 64];
    const bool was_set = (mine & bit_of(origin)) != 0;
    core_.fetch_add(core_.word({origin, at(core_.self())}), was_set ? ~bit + 1 : bit);
    mine ^= bit_of(origin);
    core_.notify(origin);
  }

  // At the origin: true if `target` has posted and that post was not consumed.
  bool posted(Home target) {
    if (differs(copy_[target / 64], target)) return true;
    copy_[target / 64] = core_.load(own_word(target));
    return differs(copy_[target / 64], target);
  }

  // At the origin: waits for the post of `target`.
  Status await(Home target) {
    if (posted(target)) return {};
    return core_.wait_until(own_word(target), [this, target](std::uint64_t v) {
      copy_[target / 64] = v;
      return differs(v, target);
    });
  }

  // At the origin: the post of `target` has served its purpose. It was seen before.
  void consume(Home target) { consumed_[target / 64] ^= bit_of(target); }

 private:
  static constexpr std::size_t words(Home cores) { return (std::size_t{cores} + 63) / 64; }
  static constexpr std::uint64_t bit_of(Home home) { return std::uint64_t{1} << (home % 64); }
  machine::Offset at(Home home) const { return layout_.words + home / 64 * 8; }
  typename C::Word own_word(Home target) { return core_.word({core_.self(), at(target)}); }
  bool differs(std::uint64_t word, Home target) const {
    return ((word ^ consumed_[target / 64]) & bit_of(target)) != 0;
  }

  C& core_;
  Layout layout_;
  std::vector<std::uint64_t> posted_by_me_;  // by origin: my bit there
  std::vector<std::uint64_t> consumed_;      // by target: its bit here after the last consumed post
  std::vector<std::uint64_t> copy_;          // my words, as last loaded
};

}  // namespace tombolo::sync
