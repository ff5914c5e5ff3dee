// SPDX-License-Identifier: Apache-2.0
// Purpose: a list of conversations whose channels have changed, the oldest change first. A thread
// that writes to a channel adds the conversation, and a thread that serves messages takes it.
//
// Invariants: TLD1 an entry is in the list once at most; after drop() it is not, unless told anew.
//             TLD2 no change is missed: the entry of one that is told comes out of take()
//                  afterwards.
// Thread safety: yes. A change is told under the lock of a channel: takes no other lock.
#pragma once

#include <atomic>
#include <mutex>

namespace tombolo::svp {

// Of an entry.
template <class T>
struct ChangeLink {
  T* next = nullptr;
  bool listed = false;
};

// T has a member `told` of that type.
template <class T>
class ChangeList {
 public:
  void tell(T& entry) {
    const std::lock_guard lock(mutex_);
    if (entry.told.listed) return;
    entry.told = {.next = nullptr, .listed = true};
    *last_ = &entry;
    last_ = &entry.told.next;
    any_.store(true, std::memory_order_release);
  }
  // The oldest; null: there is none.
  T* take() {
    if (!any()) return nullptr;
    const std::lock_guard lock(mutex_);
    T* const entry = first_;
    if (entry != nullptr) remove(&first_);
    return entry;
  }
  void drop(T& entry) {
    const std::lock_guard lock(mutex_);
    if (!entry.told.listed) return;
    T** at = &first_;
    while (*at != &entry) at = &(*at)->told.next;
    remove(at);
  }
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  void remove(T** at) {
    ChangeLink<T>& link = (*at)->told;
    if (last_ == &link.next) last_ = at;
    *at = link.next;
    link.listed = false;
    // relaxed: under the lock, which the next teller takes.
    any_.store(first_ != nullptr, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  T* first_ = nullptr;
  T** last_ = &first_;
  std::atomic<bool> any_{false};
};

}  // namespace tombolo::svp
