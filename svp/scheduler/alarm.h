// SPDX-License-Identifier: Apache-2.0
// Purpose: tells all cores that a family has been stopped (killed, broken or failed), so that its
// threads and those of its descendants end. Cores look at one word of their own each time that a
// thread creates, syncs or begins; only while a stopped family has not ended do they look further,
// at the families that they are in.
//
// Invariants: AL1 the caller marks the family as stopped before raise(): a core that hears the
//                 alarm finds the mark.
//             AL2 a core that lists a blocked thread and looks at heard() afterwards misses no
//                 alarm: heard() is true once for the alarms raised since it was true last.
//             AL3 active() is true from raise() until retire().
// Memory: a line of sync words at home 0, and one at each home.
// Data: none; the mark is a sync word.
// Thread safety: one object for each core, used by one thread at a time; raise() and retire() by
// any.
#pragma once

#include "machine/contract.h"

namespace tombolo::svp {

template <machine::Core C>
class Alarm {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset active = 0;
    machine::Offset rings = 0;
    machine::Offset attention = 0;  // a word of the caller, set to 1 where a core has to look
  };
  static Layout take(machine::SyncLayout& layout, machine::Offset attention) {
    return {.active = layout.take_lines(1), .rings = layout.take_lines(1), .attention = attention};
  }

  Alarm(C& core, Layout layout)
      : core_(core),
        layout_(layout),
        active_(core.word({0, layout.active})),
        own_rings_(core.word({core.self(), layout.rings})) {}

  void raise() {
    core_.fetch_add(active_, 1);
    for (Home home = 0; home < core_.cores(); ++home) {
      core_.fetch_add(core_.word({home, layout_.rings}), 1);
      core_.store(core_.word({home, layout_.attention}), 1);
      core_.notify(home);
    }
  }
  // The stopped family has ended.
  void retire() { core_.fetch_add(active_, ~std::uint64_t{0}); }
  bool active() { return core_.load(active_) != 0; }
  bool heard() {
    const std::uint64_t rings = core_.load(own_rings_);
    if (rings == heard_) return false;
    heard_ = rings;
    return true;
  }
  // heard() will be true.
  bool pending() { return core_.load(own_rings_) != heard_; }
  // Until heard() will be true, for a core that waits for nothing else.
  Status await() {
    return core_.wait_until(own_rings_, [heard = heard_](std::uint64_t v) { return v != heard; });
  }

 private:
  C& core_;
  Layout layout_;
  typename C::Word active_;
  typename C::Word own_rings_;
  std::uint64_t heard_ = 0;
};

}  // namespace tombolo::svp
