// SPDX-License-Identifier: Apache-2.0
// Purpose: the side of the scheduler to other processes: workers that find nothing to do look there
// for messages, and the first of them sleeps there, so that a message wakes a worker at once.
//
// Invariants: RCP1 it is set before its process has remote places, and stays to the end.
// Thread safety: yes.
#pragma once

#include <atomic>
#include <concepts>
#include <type_traits>

namespace tombolo::svp {

class RemotePoller {
 public:
  virtual ~RemotePoller() = default;

  // Takes messages that have come, and sends some that are due. True if it has brought forward
  // anything.
  virtual bool poll() = 0;
  // Ends a sleep. Called by any thread.
  virtual void wake() = 0;
  // Whichever process speaks to this one, it ends a sleep.
  virtual bool wakes_at_once() const { return true; }
  // A message has woken another process, and this was not told before. A hint.
  virtual bool has_woken() { return false; }
  // Until a message comes, ready() or a wake(); for a bounded time, and now and then too short.
  template <std::predicate Ready>
  void sleep(Ready&& ready) {
    sleep_unless([](void* on) { return (*static_cast<std::remove_reference_t<Ready>*>(on))(); },
                 &ready);
  }

  // Null: this process is alone.
  static RemotePoller* here() { return here_.load(std::memory_order_acquire); }
  static void set(RemotePoller* poller) { here_.store(poller, std::memory_order_release); }

 protected:
  virtual void sleep_unless(bool (*ready)(void*), void* on) = 0;

 private:
  static constinit inline std::atomic<RemotePoller*> here_{nullptr};
};

}  // namespace tombolo::svp
