// SPDX-License-Identifier: Apache-2.0
// Purpose: channels as parameters of a thread function that may run at another site. They come
// behind the described data; their values are described data themselves.
//
//   void add(Index i, In<long> by, Global<long>& start, SharedEnd<long>& sum);
//   auto family = create(place, {.limit = n}, remote<&add>, 2, start, sum);
//
// Thread safety: as the channels.
#pragma once

#include <cstring>

#include "svp/channels/global.h"
#include "svp/channels/shared.h"
#include "svp/remote/channel_ends.h"
#include "svp/remote/description.h"

namespace tombolo::svp {

namespace detail {

template <Portable T>
T copied(const std::byte* value) {
  T made{};
  std::memcpy(&made, value, sizeof made);
  return made;
}

}  // namespace detail

template <Portable T>
struct ChannelParameter<Global<T>&> {
  static constexpr ChannelForm form{.value = form_of<T>(Flow::in, false), .shared = false};
  using Channel = Global<T>;  // of the creator

  class Parent final : public ParentEnd {
   public:
    explicit Parent(Channel& channel) : channel_(channel) {}
    bool listen(ChannelListener& listener) override {
      return channel_.parent_channel().listen(listener);
    }
    void ignore() override { channel_.parent_channel().ignore(); }
    const void* value() const override { return channel_.parent_value(); }
    bool awaits_last() override { return false; }
    void bring_last(const std::byte*) override {}
    void close_last(bool) override {}

   private:
    Channel& channel_;
  };

  class Held final : public FamilyEnd {
   public:
    Global<T>& argument() { return channel_; }
    void listen(ChannelListener&) override {}
    void bring_value(const std::byte* value) override { channel_.bring(detail::copied<T>(value)); }
    void close_parent() override { channel_.close_parent(); }
    const void* last() const override { return nullptr; }
    bool settled() const override { return true; }
    bool ended_early() const override { return false; }
    void begin(Index, bool, bool) override {}
    void pass_on() override {}
    void end(bool) override {}

   private:
    Global<T> channel_;
  };
};

template <Portable T>
struct ChannelParameter<SharedEnd<T>&> {
  static constexpr ChannelForm form{.value = form_of<T>(Flow::in, false), .shared = true};
  using Channel = Shared<T>;  // of the creator

  class Parent final : public ParentEnd {
   public:
    explicit Parent(Channel& channel) : channel_(channel) {}
    bool listen(ChannelListener& listener) override {
      return channel_.parent_channel().listen(listener) && channel_.last_channel().listen(listener);
    }
    void ignore() override {
      channel_.parent_channel().ignore();
      channel_.last_channel().ignore();
    }
    const void* value() const override { return channel_.parent_value(); }
    bool awaits_last() override { return channel_.last_channel().awaited(); }
    void bring_last(const std::byte* value) override {
      channel_.bring_last(detail::copied<T>(value));
    }
    void close_last(bool early) override { channel_.close_last(early); }

   private:
    Channel& channel_;
  };

  class Held final : public FamilyEnd {
   public:
    SharedEnd<T>& argument() { return end_; }
    void listen(ChannelListener& listener) override {
      (void)channel_.last_channel().listen(listener);  // this family's alone
    }
    void bring_value(const std::byte* value) override {
      channel_.bring_first(detail::copied<T>(value));
    }
    void close_parent() override { channel_.close_parent(); }
    const void* last() const override { return channel_.last_value(); }
    bool settled() const override { return channel_.is_settled(); }
    bool ended_early() const override { return channel_.ended_early(); }
    void begin(Index index, bool is_first, bool is_last) override {
      end_.begin(index, is_first, is_last);
    }
    void pass_on() override { end_.pass_on(); }
    void end(bool early) override { end_.end(early); }

   private:
    Shared<T> channel_;
    SharedEnd<T> end_{channel_};
  };
};

}  // namespace tombolo::svp
