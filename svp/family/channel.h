// SPDX-License-Identifier: Apache-2.0
// Purpose: the state of a write-once channel with blocking reads (002 chapter 3), without its
// value.
//
// Invariants: VCH1 the value is written between claim() and written(), by one thread; it is read
//                 after wait() has returned true, and then never changes.
//             VCH2 a channel that is closed without a value never gets one.
//             VCH3 a blocked reader is in the list until a writer or closer takes it out, and then
//                 delivers to it, under one lock; or until the reader, stopped, takes itself
//                 out.
//             VCH4 a listener is told under the same lock: after ignore() it is not told any more.
// Thread safety: yes.
#pragma once

#include <atomic>
#include <cstdint>

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

  bool has_value() const { return (state_.load(std::memory_order_acquire) & has) != 0; }
  // Blocks until there is a value. False: the channel was closed without one. Throws Stopped if the
  // reader's family is stopped meanwhile, std::bad_alloc if there is no stack to go on with.
  bool wait() {
    if (has_value()) [[likely]]
      return true;
    return wait_slowly();
  }
  // The only writer is about to write. False: there was another one.
  bool claim() { return (state_.fetch_or(claimed) & (claimed | closed)) == 0; }
  void written() { end_with(has); }
  // No value will come, unless one has been claimed.
  void close() {
    if (claim()) end_with(closed);
  }

  // To a family, by its creator. False: it belongs to another one. relaxed: finds a mistake, and
  // orders nothing.
  bool hand_over() {
    if (handed_over_.load(std::memory_order_relaxed)) return false;
    handed_over_.store(true, std::memory_order_relaxed);
    return true;
  }
  // By a transport. The channel is one family's: it has one listener at most; false: it has one.
  bool listen(ChannelListener& listener);
  void ignore();
  // A thread is blocked in it.
  bool awaited();
  // There is a value, or none will come.
  bool settled() const { return (state_.load(std::memory_order_acquire) & (has | closed)) != 0; }

 private:
  static constexpr std::uint32_t claimed = 1;
  static constexpr std::uint32_t has = 2;
  static constexpr std::uint32_t closed = 4;
  static constexpr std::uint32_t locked = 8;

  bool wait_slowly();
  void end_with(std::uint32_t end);
  void lock();
  void unlock() { state_.fetch_and(~locked); }
  bool list(Blocked& blocked);
  bool unlist(const Blocked& blocked);

  std::atomic<std::uint32_t> state_{0};
  std::atomic<bool> handed_over_{false};
  Blocked* waiting_ = nullptr;
  ChannelListener* listener_ = nullptr;
};

}  // namespace tombolo::svp
