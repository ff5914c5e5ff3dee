// SPDX-License-Identifier: Apache-2.0
// Purpose: a write-once channel with its value, of which global and shared channels are made.
// Thread safety: as Channel.
#pragma once

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "svp/channels/channel.h"

namespace tombolo::svp {

template <class T>
concept ChannelValue = std::is_nothrow_move_constructible_v<T> && std::is_object_v<T>;

template <ChannelValue T>
class Cell : public Channel {
 public:
  Cell() {}
  ~Cell() {
    if (has_value()) std::destroy_at(&value_);
  }

  // After claim().
  void put(T&& value) {
    std::construct_at(&value_, std::move(value));
    written();
  }
  // After wait().
  const T& get() const { return value_; }

 private:
  union {
    T value_;
  };
};

// The parent's read of a shared channel of a family that was killed, broken or failed.
struct NoValue : std::runtime_error {
  NoValue() : std::runtime_error("the family ended before its last thread wrote to the channel") {}
};

// A read of a channel that was closed without a value: ends the reader's thread if its family was
// stopped, else stops the program with `message`.
[[noreturn]] void no_value(const char* message);

}  // namespace tombolo::svp
