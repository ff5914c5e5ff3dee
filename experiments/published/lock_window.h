// SPDX-License-Identifier: Apache-2.0
// Purpose: a window whose passive target epochs take a published lock instead of one of ours:
// McsWriterPreference or BestEffort. Communication, coherence and the rest of an epoch are those of
// windows/window.h.
//
// Invariants: LW1 the window's own locks are never taken: each of its epochs is opened with the
//                 promise that no lock conflicts, which the published lock keeps.
//             LW2 an epoch's puts are in memory before its lock is given back.
//             LW3 one lock is held at a time.
// Thread safety: one call at a time per object.
#pragma once

#include "base/check.h"
#include "experiments/published/window_with.h"

namespace tombolo::experiments::published {

template <machine::Core C, template <class> class Locks>
class LockWindow : public WindowWith<C, Locks> {
  using Base = WindowWith<C, Locks>;
  using Base::part_;
  using Base::window_;

 public:
  using Base::Base;
  using Home = machine::Home;
  using Offset = machine::Offset;

  Status put(Home target, Offset at, const void* from, std::size_t bytes) {
    return window_.put(target, at, from, bytes);
  }
  Status get(Home target, Offset at, void* to, std::size_t bytes) {
    return window_.get(target, at, to, bytes);
  }
  Status lock(sync::Access access, Home target, windows::Assertions promise) {
    TOMBOLO_CHECK(!held_, "published lock: core {} asks for lock {} and holds another",
                  this->core().self(), target);  // LW3
    held_ = true;
    access_ = access;
    TOMBOLO_TRY(part_.lock(access, target));
    promise.no_check = true;
    return window_.lock(access, target, promise);
  }
  Status unlock(Home target) {
    held_ = false;
    TOMBOLO_TRY(window_.unlock(target));
    return part_.unlock(access_, target);
  }

 private:
  bool held_ = false;
  sync::Access access_ = sync::Access::shared;  // of the lock that is held
};

}  // namespace tombolo::experiments::published
