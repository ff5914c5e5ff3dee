// SPDX-License-Identifier: Apache-2.0
// Purpose: lets several threads of one core call a lock family at once. A family's members for its
// core are guarded by `state`, for moments only, never during a wait. The node of a waiting core
// (wait_node.h) exists once, so one thread at a time has the `turn` to wait with it; the others try
// again and again, without queueing, until they get the lock or the turn.
//
// Invariants: CA1 no thread waits for another of its own core: a thread that blocks, for however
//                 long, keeps no other from a lock that is free.
//             CA2 an attempt that fails leaves nothing behind.
// Price: of one core's threads only the one that has the turn is in the order of the lock; as long
// as it waits, the others may be overtaken without bound.
// With one thread nothing of it costs more than a test.
// Thread safety: any.
#pragma once

#include <mutex>

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::sync {

// A mutex that is one only if there are several threads.
class StateMutex {
 public:
  explicit StateMutex(bool threads) : threads_(threads) {}
  void lock() {
    if (threads_) [[unlikely]]
      mutex_.lock();
  }
  void unlock() {
    if (threads_) [[unlikely]]
      mutex_.unlock();
  }

 private:
  const bool threads_;
  std::mutex mutex_;
};

template <machine::Core C>
class Turn {
 public:
  Turn(C& core, const LockOptions& options) : core_(core), options_(options) {}

  // Runs wait(), which returns a Status, in turn; or attempt() until it is true.
  template <class Wait, class Attempt>
  Status take(Wait&& wait, Attempt&& attempt) {
    if (!options_.threads) [[likely]]
      return wait();
    Backoff<C> backoff(core_, options_);
    for (;;) {
      if (const std::unique_lock turn(mutex_, std::try_to_lock); turn.owns_lock()) return wait();
      if (attempt()) return {};
      TOMBOLO_TRY(backoff.pause());
    }
  }

 private:
  C& core_;
  LockOptions options_;
  std::mutex mutex_;
};

}  // namespace tombolo::sync
