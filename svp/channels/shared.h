// SPDX-License-Identifier: Apache-2.0
// Purpose: a shared channel (002 chapter 3): the first thread of a family reads the value that the
// parent wrote, each other thread that of the thread before it, and the parent that of the last
// thread. Each writes once; reads block.
//
//   Shared<int> sum(0);
//   auto family = create({.limit = 10}, [](Index i, SharedEnd<int>& s) { s.write(s.read() + i); },
//                        sum);
//   family.sync();
//   sum.read();
//
// The threads of a family with shared channels run in the order of their indices, so only the
// parent and the first thread ever wait for each other, and a hop needs no synchronization.
// Through a family without threads the parent's value comes back to it. A parent that reads the
// last value before it has written the first one may wait for a thread that waits for it: for ever.
// A channel belongs to one family, and outlives it.
// Thread safety: Shared: yes. SharedEnd: the thread that it is given to.
#pragma once

#include <atomic>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "svp/channels/cell.h"
#include "svp/range.h"

namespace tombolo::svp {

template <ChannelValue T>
class SharedEnd;

// The parent's side.
template <ChannelValue T>
class Shared {
 public:
  using Value = T;
  using End = SharedEnd<T>;

  Shared() = default;
  explicit Shared(T value) { write(std::move(value)); }

  // To the first thread.
  void write(T value) {
    TOMBOLO_CHECK(first_.claim(),
                  "write: the parent wrote to this shared channel before, or synced its family");
    first_.put(std::move(value));
  }
  // From the last thread, behind the family's create. Throws NoValue if the family was stopped
  // before that wrote; Stopped, std::bad_alloc (Channel::wait).
  const T& read() {
    TOMBOLO_CHECK(last_.has_value() || first_.is_handed_over(),
                  "read: the parent reads a shared channel that belongs to no family yet");
    if (last_.wait()) return last_.get();
    if (ended_early_.load()) throw NoValue();
    no_value("read: the last thread ended without a write to this shared channel");
  }

  // By the family, at its create.
  void hand_over() {
    TOMBOLO_CHECK(first_.hand_over(), "create: a channel that belongs to another family");
  }
  // By the family, when its parent will write no more.
  void close_parent() { first_.close(); }

  // ---- By a transport, where parent and family are at two sites ----
  Channel& parent_channel() { return first_; }
  Channel& last_channel() { return last_; }
  bool is_settled() const { return last_.settled(); }
  // Null: not written yet.
  const T* parent_value() const { return first_.has_value() ? &first_.get() : nullptr; }
  const T* last_value() const { return last_.has_value() ? &last_.get() : nullptr; }
  bool ended_early() const { return ended_early_.load(); }
  // At the family: the parent's value has come.
  void bring_first(T value) {
    if (first_.claim()) first_.put(std::move(value));
  }
  // At the parent: the last thread's value has come, or none will.
  void bring_last(T value) {
    if (last_.claim()) last_.put(std::move(value));
  }
  void close_last(bool early) {
    if (early) ended_early_.store(true);
    last_.close();
  }

 private:
  friend class SharedEnd<T>;
  Cell<T> first_;
  Cell<T> last_;
  std::atomic<bool> ended_early_{false};
};

// A thread's side: the value of the thread before it, and the value for the next one.
template <ChannelValue T>
class SharedEnd {
 public:
  explicit SharedEnd(Shared<T>& channel) : channel_(channel) {}

  const T& read() {
    if (is_first_) return read_first();
    TOMBOLO_CHECK(
        before_.has_value(),
        "read: thread {} reads a shared channel, and the thread before it ended without a "
        "write to it",
        index_);
    return *before_;
  }
  void write(T value) {
    TOMBOLO_CHECK(!written_, "write: thread {} writes to a shared channel a second time", index_);
    written_ = true;
    if (is_last_ && channel_.last_.claim())
      channel_.last_.put(std::move(value));
    else
      after_.emplace(std::move(value));
  }

  // By the family: the next thread in order begins.
  void begin(Index index, bool is_first, bool is_last) {
    index_ = index;
    is_first_ = is_first;
    is_last_ = is_last;
    written_ = false;
    before_ = std::move(after_);
    after_.reset();
  }
  // There is no thread at all.
  void pass_on() {
    if constexpr (std::is_copy_constructible_v<T>)
      if (channel_.first_.wait() && channel_.last_.claim())
        channel_.last_.put(T(channel_.first_.get()));
  }
  // No thread is left to write.
  void end(bool early) { channel_.close_last(early); }

 private:
  const T& read_first() {
    if (!channel_.first_.wait())
      no_value("read: the parent synced without a write to this shared channel");
    return channel_.first_.get();
  }

  Shared<T>& channel_;
  std::optional<T> before_;
  std::optional<T> after_;
  Index index_ = 0;
  bool is_first_ = true;
  bool is_last_ = false;
  bool written_ = false;
};

}  // namespace tombolo::svp
