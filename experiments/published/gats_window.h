// SPDX-License-Identifier: Apache-2.0
// Purpose: a window whose active target epochs are synchronized by a published algorithm instead of
// ours: MatchVectorGats or MatchListGats. Communication and coherence are those of
// windows/window.h.
//
// Invariants: GW1 the window's own epochs are never waited for: an access epoch is opened there
//                 with the promise that no lock conflicts.
//             GW2 puts are in memory before their targets hear of them: the window's epoch ends
//                 first.
//             GW3 the program's stores into its region are in memory before its post, and others'
//                 puts there are seen after its wait: the window's sync does both.
// Thread safety: one call at a time per object.
#pragma once

#include <span>

#include "experiments/published/window_with.h"

namespace tombolo::experiments::published {

template <machine::Core C, template <class> class Gats>
class GatsWindow : public WindowWith<C, Gats> {
  using Base = WindowWith<C, Gats>;
  using Base::part_;
  using Base::window_;

 public:
  using Base::Base;
  using Home = machine::Home;
  using Offset = machine::Offset;

  Status put(Home target, Offset at, const void* from, std::size_t bytes) {
    TOMBOLO_TRY(part_.await(target));
    return window_.put(target, at, from, bytes);
  }
  Status post(std::span<const Home> origins, windows::Assertions promise = {}) {
    TOMBOLO_TRY(window_.sync());  // GW3
    return part_.post(origins, promise);
  }
  Status start(std::span<const Home> targets, windows::Assertions promise = {}) {
    TOMBOLO_TRY(window_.lock_all({.no_check = true}));  // GW1
    return part_.start(targets, promise);
  }
  Status complete() {
    TOMBOLO_TRY(window_.unlock_all());  // GW2
    return part_.complete();
  }
  Status wait() {
    TOMBOLO_TRY(part_.wait());
    return window_.sync();  // GW3
  }
};

}  // namespace tombolo::experiments::published
