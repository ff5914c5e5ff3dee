// SPDX-License-Identifier: Apache-2.0
// Purpose: a window whose passive target epochs take a published lock instead of one of ours:
// McsWriterPreference or BestEffort. Communication, coherence and the rest of an epoch are those of
// windows/window.h.
//
// Invariants: W1 the window's own locks are never taken: each of its epochs is opened with the
//                promise that no lock conflicts, which the published lock keeps.
//             W2 an epoch's puts are in memory before its lock is given back.
//             W3 one lock is held at a time.
// Thread safety: one call at a time per object.
#pragma once

#include <utility>

#include "base/check.h"
#include "windows/window.h"

namespace tombolo::experiments::published {

template <machine::Core C, template <class> class Locks>
class LockWindow {
 public:
  using Home = machine::Home;
  using Offset = machine::Offset;

  static std::size_t sync_bytes(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    Locks<C>::take(sync, cores);
    return sync.bytes();
  }

  template <class... Options>
  explicit LockWindow(const machine::Attachment& at, Options&&... options)
      : window_(at, {}),
        locks_(window_.core(), layout(at.cores), std::forward<Options>(options)...) {}

  C& core() { return window_.core(); }

  Status put(Home target, Offset at, const void* from, std::size_t bytes) {
    return window_.put(target, at, from, bytes);
  }
  Status get(Home target, Offset at, void* to, std::size_t bytes) {
    return window_.get(target, at, to, bytes);
  }
  Status lock(sync::Access access, Home target, windows::Assertions promise) {
    TOMBOLO_CHECK(!held_, "published lock: core {} asks for lock {} and holds another",
                  window_.core().self(), target);  // W3
    held_ = true;
    access_ = access;
    TOMBOLO_TRY(locks_.lock(access, target));
    promise.no_check = true;
    return window_.lock(access, target, promise);
  }
  Status unlock(Home target) {
    held_ = false;
    TOMBOLO_TRY(window_.unlock(target));
    return locks_.unlock(access_, target);
  }
  Status barrier() { return window_.barrier(); }

 private:
  static typename Locks<C>::Layout layout(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    return Locks<C>::take(sync, cores);
  }

  windows::Window<C> window_;
  Locks<C> locks_;
  bool held_ = false;
  sync::Access access_ = sync::Access::shared;  // of the lock that is held
};

}  // namespace tombolo::experiments::published
