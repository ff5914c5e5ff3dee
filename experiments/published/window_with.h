// SPDX-License-Identifier: Apache-2.0
// Purpose: the base of the windows with a published part: one of ours (windows/window.h), and the
// part, whose synchronization data lie behind the window's own.
//
// Invariants: UW1 the part and the window share one core: their accesses are in one order.
// Thread safety: one call at a time per object.
#pragma once

#include <utility>

#include "windows/window.h"

namespace tombolo::experiments::published {

template <machine::Core C, template <class> class Part>
class WindowWith {
 public:
  using Home = machine::Home;
  using Offset = machine::Offset;

  static std::size_t sync_bytes(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    Part<C>::take(sync, cores);
    return sync.bytes();
  }

  // `options`: the part's.
  template <class... Options>
  explicit WindowWith(const machine::AttachmentOf<C>& at, Options&&... options)
      : window_(at, {}),
        part_(window_.core(), layout(at.cores), std::forward<Options>(options)...) {}

  C& core() { return window_.core(); }
  Status barrier() { return window_.barrier(); }

 protected:
  windows::Window<C> window_;
  Part<C> part_;

 private:
  static typename Part<C>::Layout layout(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    return Part<C>::take(sync, cores);
  }
};

}  // namespace tombolo::experiments::published
