// SPDX-License-Identifier: Apache-2.0
// Purpose: which epochs one process has open at one window, and whether a call fits them.
//
//   access epochs               none -> fence | start | lock(s) | lock_all -> none
//   exposure epochs             none -> post -> none        (a fence opens and closes both kinds)
//
// Invariants: EO1 a fence opens an access epoch only in so far as a communication call follows;
//                 until then any other epoch may be opened (MPI: a fence starts an epoch "if it is
//                 followed by" communication and another fence).
//             EO2 lock epochs at distinct targets may be open at once; no other two access epochs
//                 may.
//             EO3 the kinds from fence_used on let every process be a target.
// The state of a single lock epoch is in this object: a list elsewhere in memory would be one more
// page to find after a long computation.
// Thread safety: none; the owner serializes.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/status.h"
#include "machine/place.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::windows {

using machine::Home;

class Epochs {
 public:
  // In this order: EO3.
  enum class Kind : std::uint8_t { none, fence_open, start, lock, fence_used, lock_all };
  struct Held {
    Home target;
    sync::Access access;
    bool taken;  // false under the assertion that no check is needed
  };

  Kind kind() const { return kind_; }
  bool exposed() const { return exposed_; }
  const std::vector<Home>& started() const { return started_; }
  bool start_checked() const { return start_checked_; }

  // May this process communicate with `target` now? Called by every communication call.
  [[gnu::always_inline]] Status use(Home target) {
    return in_use(target) ? Status{} : use_another(target);
  }
  // True only where use() has nothing more to find out.
  [[gnu::always_inline]] bool in_use(Home target) const {
    return kind_ >= Kind::fence_used || (kind_ == Kind::lock && newest_.target == target);  // EO3
  }

  Status may_fence() const {
    if (kind_ == Kind::start || kind_ == Kind::lock || kind_ == Kind::lock_all)
      return Status::epoch("fence inside an access epoch of another kind");
    if (exposed_) return Status::epoch("fence inside an exposure epoch opened by post");
    return {};
  }
  void fenced(bool opens) { kind_ = opens ? Kind::fence_open : Kind::none; }

  Status may_start() const { return idle("start inside another access epoch"); }
  void start(std::span<const Home> targets, bool checked) {
    kind_ = Kind::start;
    started_.assign(targets.begin(), targets.end());
    start_checked_ = checked;
  }
  Status may_complete() const {
    if (kind_ != Kind::start) return Status::epoch("complete without start");
    return {};
  }
  void complete() {
    kind_ = Kind::none;
    started_.clear();
  }

  Status may_post() const {
    if (exposed_) return Status::epoch("post inside an exposure epoch");
    if (kind_ == Kind::fence_used) return Status::epoch("post inside a fence epoch");
    return {};
  }
  void post() { exposed_ = true; }
  Status may_wait() const {
    if (!exposed_) return Status::epoch("wait or test without post");
    return {};
  }
  void unexpose() { exposed_ = false; }

  Status may_lock(Home target) const {
    if (kind_ == Kind::lock) {
      if (find(target) != nullptr) return Status::epoch("the target is already locked");
      return {};
    }
    return idle("lock inside another access epoch");
  }
  void lock(Held held) {
    if (kind_ == Kind::lock) [[unlikely]]
      earlier_.push_back(newest_);
    kind_ = Kind::lock;
    newest_ = held;
  }
  // In `held` the lock held on `target`, until the next lock() or unlock(); or an error.
  Status may_unlock(Home target, const Held*& held) const {
    held = kind_ == Kind::lock ? find(target) : nullptr;
    if (held == nullptr) [[unlikely]]
      return Status::epoch("unlock of a target that is not locked");
    return {};
  }
  // After may_unlock() of the same target.
  void unlock(Home target) {
    if (earlier_.empty()) [[likely]] {
      kind_ = Kind::none;
      return;
    }
    unlock_one_of_many(target);
  }

  Status may_lock_all() const { return idle("lock_all inside another access epoch"); }
  void lock_all(bool taken) {
    kind_ = Kind::lock_all;
    all_taken_ = taken;
  }
  Status may_unlock_all() const {
    if (kind_ != Kind::lock_all) return Status::epoch("unlock_all without lock_all");
    return {};
  }
  bool all_taken() const { return all_taken_; }
  void unlock_all() { kind_ = Kind::none; }

  Status may_flush() const {
    if (kind_ != Kind::lock && kind_ != Kind::lock_all)
      return Status::epoch("flush outside a passive target epoch");
    return {};
  }
  Status may_sync() const {
    if (kind_ != Kind::lock && kind_ != Kind::lock_all)
      return Status::epoch("sync outside a passive target epoch");
    return {};
  }
  Status may_flush(Home target) const {
    if (kind_ == Kind::lock_all) [[likely]]
      return {};
    if (kind_ == Kind::lock && find(target) == nullptr)
      return Status::epoch("flush of a target that is not locked");
    return may_flush();
  }
  // An error if anything but the open end of a fence is left.
  Status may_close() const {
    if (exposed_) return Status::epoch("the window is freed inside an exposure epoch");
    if (kind_ == Kind::none || kind_ == Kind::fence_open || kind_ == Kind::fence_used) return {};
    return Status::epoch("the window is freed inside an access epoch");
  }

 private:
  Status idle(const char* fault) const {
    if (kind_ == Kind::none || kind_ == Kind::fence_open) [[likely]]
      return {};
    return Status::epoch(fault);
  }
  // The slow part of use(). The first call after a fence comes here.
  [[gnu::noinline]] Status use_another(Home target) {
    if (kind_ == Kind::fence_open) {
      kind_ = Kind::fence_used;
      return {};
    }
    if (kind_ == Kind::lock) {
      if (find_earlier(target) != nullptr) return {};
      return Status::epoch("no lock is held on this target");
    }
    if (kind_ == Kind::start) {
      if (std::find(started_.begin(), started_.end(), target) != started_.end()) return {};
      return Status::epoch("the target is not in the group of the start call");
    }
    return Status::epoch("no access epoch is open");
  }

  // The lock held on `target`, or null. In a lock epoch.
  [[gnu::always_inline]] const Held* find(Home target) const {
    if (newest_.target == target) [[likely]]
      return &newest_;
    return find_earlier(target);
  }
  [[gnu::noinline]] const Held* find_earlier(Home target) const {
    const auto found = std::find_if(earlier_.rbegin(), earlier_.rend(),
                                    [target](const Held& held) { return held.target == target; });
    return found == earlier_.rend() ? nullptr : &*found;
  }
  [[gnu::noinline]] void unlock_one_of_many(Home target) {
    if (newest_.target == target)
      newest_ = earlier_.back();
    else
      earlier_[static_cast<std::size_t>(find_earlier(target) - earlier_.data())] = earlier_.back();
    earlier_.pop_back();
  }

  Kind kind_ = Kind::none;
  bool exposed_ = false;
  bool start_checked_ = true;
  bool all_taken_ = false;
  Held newest_{};              // in a lock epoch
  std::vector<Held> earlier_;  // the other locks held
  std::vector<Home> started_;
};

}  // namespace tombolo::windows
