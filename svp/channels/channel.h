// SPDX-License-Identifier: Apache-2.0
// Purpose: the state of a write-once channel with blocking reads (002 chapter 3), without its
// value.
//
// Invariants (WON1 to WON4 of write_once.h besides):
//             VCH1 the value is written between claim() and written(), by one thread; it is read
//                 after wait() has returned true, and then never changes.
//             VCH2 a channel that is closed without a value never gets one.
// Thread safety: yes.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/engines/thread_core.h"
#include "svp/channels/write_once.h"
#include "svp/scheduler/blocked.h"

namespace tombolo::svp {

// A part of the run-time that has to know of a channel: the family is at another site.
class ChannelListener {
 public:
  // The channel has its value, or was closed, or a thread blocks in it. Under the channel's lock,
  // by the thread that has brought it about: takes no lock under which channels are used.
  virtual void channel_changed() noexcept = 0;

 protected:
  ~ChannelListener() = default;
};

class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // acquire: the value was written before.
  bool has_value() const { return (state_.load(std::memory_order_acquire) & Protocol::has) != 0; }
  // Blocks until there is a value. False: the channel was closed without one. Throws Stopped if the
  // reader's family is stopped meanwhile, std::bad_alloc if there is no stack to go on with.
  bool wait() {
    if (has_value()) [[likely]]
      return true;
    return wait_slowly();
  }
  // The only writer is about to write. False: there was another one.
  bool claim() { return Protocol::claim(core(), words()); }
  void written();
  // No value will come, unless one has been claimed.
  void close();

  // To a family, by its creator. False: it belongs to another one. relaxed: finds a mistake, and
  // orders nothing.
  bool hand_over() {
    if (handed_over_.load(std::memory_order_relaxed)) return false;
    handed_over_.store(true, std::memory_order_relaxed);
    return true;
  }
  bool is_handed_over() const { return handed_over_.load(std::memory_order_relaxed); }
  // By a transport. The channel is one family's: it has one listener at most; false: it has one.
  bool listen(ChannelListener& listener);
  void ignore();
  // A thread is blocked in it.
  bool awaited() { return Protocol::awaited(core(), words()); }
  // There is a value, or none will come. acquire: as has_value().
  bool settled() const {
    return (state_.load(std::memory_order_acquire) & (Protocol::has | Protocol::closed)) != 0;
  }

 private:
  using Core = runtime::ThreadCore;
  using Protocol = WriteOnce<Core>;

  // For its operations on words alone.
  static Core& core();
  Protocol::Words words() {
    return {.state = &state_, .waiting = &waiting_, .listener = &listener_};
  }
  bool wait_slowly();
  static void tell(std::uint64_t listener);
  static void await_unlock(Core::Word state);

  std::atomic<std::uint64_t> state_{0};
  std::atomic<std::uint64_t> waiting_{0};   // a Blocked
  std::atomic<std::uint64_t> listener_{0};  // a ChannelListener
  std::atomic<bool> handed_over_{false};
};

}  // namespace tombolo::svp
