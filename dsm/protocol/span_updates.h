// SPDX-License-Identifier: Apache-2.0
// Purpose: the locks of a program, each with a log of the changes that were made under it, or sent
// as it was handed over: a thread that takes the lock reads those that are new to it (rule 2 of
// regional consistency).
//
// Per acquire: an atomic, a load, and a get for each new update. Per release: a put for each update
// and two stores. Memory: a line of words and the ring of updates for each lock; a number for each
// lock in each thread.
//
// Invariants: DSU1 the log belongs to the holder of the lock.
//             DSU2 the count is stored after the updates that it counts are complete, and before
//                  the lock is free: a thread that takes the lock gets them all.
//             DSU3 a reader that is behind by more than the ring holds is told so, and has to look
//                  at all its copies, unless it has notice of each change: the changes themselves
//                  are at the pages' homes.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "dsm/protocol/transport.h"
#include "sync/locks/mutex.h"

namespace tombolo::dsm {

template <Transport T>
class SpanUpdates {
 public:
  using Core = typename T::Core;
  struct Layout {
    machine::Offset words = 0;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.words = layout.take_lines(shape.locks_per_home() * words_per_lock)};
  }

  SpanUpdates(T& transport, Layout layout)
      : transport_(transport),
        core_(transport.core()),
        layout_(layout),
        mutex_(core_),
        seen_(transport.shape().locks, 0) {}

  Status acquire(Lock lock) { return mutex_.acquire(word(lock, 0)); }
  bool try_acquire(Lock lock) { return mutex_.try_acquire(word(lock, 0)); }
  // By any thread, at this moment.
  bool held(Lock lock) { return core_.load(word(lock, 0)) != 0; }
  void release(Lock lock) { mutex_.release(word(lock, 0)); }

  // By the holder. Calls body(update), which returns a Status, for each one that this thread has
  // not read yet. `lost`: some are overwritten, and body was not called.
  template <class Body>
  Status read(Lock lock, Body&& body, bool& lost) {
    const std::uint64_t end = core_.load(word(lock, 1));
    lost = end - seen_[lock] > capacity();
    for (std::uint64_t next = lost ? end : seen_[lock]; next < end; ++next) {
      Update update;
      TOMBOLO_TRY(transport_.get_update(lock, next % capacity(), update));
      TOMBOLO_TRY(body(update));
    }
    seen_[lock] = end;
    return {};
  }

  // By the holder of the lock: it has read the log, and needs none of these updates itself.
  Status append(Lock lock, std::span<const Update> updates) {
    if (updates.empty()) return {};
    const std::uint64_t first = seen_[lock];
    // More than the ring holds: no reader will ask for the first ones (DSU3).
    const std::size_t past = updates.size() - std::min<std::size_t>(updates.size(), capacity());
    for (std::size_t i = past; i < updates.size(); ++i)
      TOMBOLO_TRY(transport_.put_update(lock, (first + i) % capacity(), updates[i]));
    // They are in the log before they are counted (DSU2).
    TOMBOLO_TRY(transport_.complete());
    seen_[lock] = first + updates.size();
    core_.store(word(lock, 1), seen_[lock]);
    return {};
  }

 private:
  static constexpr std::size_t words_per_lock = 8;
  std::uint64_t capacity() const { return transport_.shape().updates; }
  typename Core::Word word(Lock lock, std::size_t index) {
    const Shape& shape = transport_.shape();
    return core_.word({shape.home_of_lock(lock),
                       layout_.words + (shape.place_of_lock(lock) * words_per_lock + index) *
                                           sizeof(std::uint64_t)});
  }

  T& transport_;
  Core& core_;
  Layout layout_;
  sync::SpinMutex<Core> mutex_;
  std::vector<std::uint64_t> seen_;  // of the updates of each lock
};

}  // namespace tombolo::dsm
