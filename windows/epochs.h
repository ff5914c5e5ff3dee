// SPDX-License-Identifier: Apache-2.0
// Purpose: which epochs one process has open at one window, and whether a call fits them.
//
//   access epochs               none -> fence | start | lock(s) | lock_all -> none
//   exposure epochs             none -> post -> none        (a fence opens and closes both kinds)
//
// Invariants: H1 a fence opens an access epoch only in so far as a communication call follows;
// until
//                then any other epoch may be opened (MPI: a fence starts an epoch "if it is
//                followed by" communication and another fence).
//             H2 lock epochs at distinct targets may be open at once; no other two access epochs
//             may.
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
  enum class Kind : std::uint8_t { none, fence_open, fence_used, start, lock, lock_all };
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
    switch (kind_) {
      case Kind::lock_all:
      case Kind::fence_used:
        return {};
      case Kind::fence_open:
        kind_ = Kind::fence_used;
        return {};
      case Kind::lock:
        if (find(target) != nullptr) [[likely]]
          return {};
        return Status::epoch("no lock is held on this target");
      case Kind::start:
        if (std::find(started_.begin(), started_.end(), target) != started_.end()) return {};
        return Status::epoch("the target is not in the group of the start call");
      case Kind::none:
        break;
    }
    return Status::epoch("no access epoch is open");
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
    kind_ = Kind::lock;
    held_.push_back(held);
  }
  // The lock held on `target`, or a fault.
  Status may_unlock(Home target, Held& held) const {
    const Held* const found = find(target);
    if (kind_ != Kind::lock || found == nullptr)
      return Status::epoch("unlock of a target that is not locked");
    held = *found;
    return {};
  }
  void unlock(Home target) {
    held_[static_cast<std::size_t>(find(target) - held_.data())] = held_.back();
    held_.pop_back();
    if (held_.empty()) kind_ = Kind::none;
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
  Status may_flush(Home target) const {
    if (kind_ == Kind::lock_all) [[likely]]
      return {};
    if (kind_ == Kind::lock && find(target) == nullptr)
      return Status::epoch("flush of a target that is not locked");
    return may_flush();
  }
  // Fault if anything but the open end of a fence is left.
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
  // The newest first: mostly it is the one. A plain loop: std::find_if, which is unrolled, takes
  // more of the cache for code than all else of a call.
  [[gnu::always_inline]] const Held* find(Home target) const {
    for (const Held* held = held_.data() + held_.size(); held != held_.data();)
      if ((--held)->target == target) return held;
    return nullptr;
  }

  Kind kind_ = Kind::none;
  bool exposed_ = false;
  bool start_checked_ = true;
  bool all_taken_ = false;
  std::vector<Held> held_;
  std::vector<Home> started_;
};

}  // namespace tombolo::windows
