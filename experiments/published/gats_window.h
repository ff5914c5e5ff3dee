// SPDX-License-Identifier: Apache-2.0
// Purpose: a window whose active target epochs are synchronized by a published algorithm instead of
// ours: MatchVectorGats or MatchListGats. Communication and coherence are those of
// windows/window.h.
//
// Invariants: G1 the window's own epochs are never waited for: an access epoch is opened there with
//                the promise that no lock conflicts.
//             G2 puts are in memory before their targets hear of them: the window's epoch ends
//                first.
//             G3 what the program stored into its region is in memory before its post, and what
//                others put there is seen after its wait: the window's sync does both.
// Thread safety: one call at a time per object.
#pragma once

#include <span>

#include "windows/window.h"

namespace tombolo::experiments::published {

template <machine::Core C, template <class> class Gats>
class GatsWindow {
 public:
  using Home = machine::Home;
  using Offset = machine::Offset;

  static std::size_t sync_bytes(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    Gats<C>::take(sync, cores);
    return sync.bytes();
  }

  explicit GatsWindow(const machine::Attachment& at)
      : window_(at, {}), gats_(window_.core(), layout(at.cores)) {}

  C& core() { return window_.core(); }

  Status put(Home target, Offset at, const void* from, std::size_t bytes) {
    TOMBOLO_TRY(gats_.await(target));
    return window_.put(target, at, from, bytes);
  }
  Status post(std::span<const Home> origins, windows::Assertions promise = {}) {
    TOMBOLO_TRY(window_.sync());  // G3
    return gats_.post(origins, promise);
  }
  Status start(std::span<const Home> targets, windows::Assertions promise = {}) {
    TOMBOLO_TRY(window_.lock_all({.no_check = true}));  // G1
    return gats_.start(targets, promise);
  }
  Status complete() {
    TOMBOLO_TRY(window_.unlock_all());  // G2
    return gats_.complete();
  }
  Status wait() {
    TOMBOLO_TRY(gats_.wait());
    return window_.sync();  // G3
  }
  Status barrier() { return window_.barrier(); }

 private:
  static typename Gats<C>::Layout layout(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    return Gats<C>::take(sync, cores);
  }

  windows::Window<C> window_;
  Gats<C> gats_;
};

}  // namespace tombolo::experiments::published
