// SPDX-License-Identifier: Apache-2.0
// Purpose: the channels of C programs: values of a size that is known at run time, and lists of
// channels.
// Thread safety: as Global, Shared and SharedEnd.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "svp/api/include/tombolo/svp.h"
#include "svp/channels/global.h"
#include "svp/channels/shared.h"

namespace tombolo::svp {

struct CValue {
  std::array<std::byte, TOMBOLO_SVP_VALUE_BYTES> bytes;

  static CValue of(const void* value, std::size_t bytes) {
    CValue made{};
    std::memcpy(made.bytes.data(), value, bytes);
    return made;
  }
};

struct CGlobal {
  explicit CGlobal(std::size_t bytes) : value_bytes(bytes) {}
  std::size_t value_bytes;
  Global<CValue> channel;
};

struct CShared {
  explicit CShared(std::size_t bytes) : value_bytes(bytes) {}
  std::size_t value_bytes;
  SharedEnd<CValue>* end = nullptr;  // of the running thread; threads run in order
  Shared<CValue> channel;
};

inline CGlobal& of(tombolo_svp_global_t* global) { return *reinterpret_cast<CGlobal*>(global); }
inline CShared& of(tombolo_svp_shared_t* shared) { return *reinterpret_cast<CShared*>(shared); }

// The channels of a family without shared ones.
struct CGlobals {
  using Value = CValue;
  using End = CGlobals&;

  void hand_over() {
    for (std::size_t i = 0; i < count; ++i) of(all[i]).channel.hand_over();
  }
  void close_parent() {
    for (std::size_t i = 0; i < count; ++i) of(all[i]).channel.close_parent();
  }
  tombolo_svp_global_t* const* all = nullptr;
  std::size_t count = 0;
};

class CSharedEnds;

// Of one with shared ones.
struct CChannels {
  using Value = CValue;
  using End = CSharedEnds;

  void hand_over() {
    globals.hand_over();
    for (std::size_t i = 0; i < count; ++i) shareds[i]->channel.hand_over();
  }
  void close_parent() {
    globals.close_parent();
    for (std::size_t i = 0; i < count; ++i) shareds[i]->channel.close_parent();
  }
  CGlobals globals;
  std::array<CShared*, TOMBOLO_SVP_SHARED_CHANNELS> shareds{};
  std::size_t count = 0;
};

class CSharedEnds {
 public:
  explicit CSharedEnds(CChannels& channels) : channels_(channels) {
    for (std::size_t i = 0; i < channels.count; ++i) {
      ends_[i].emplace(channels.shareds[i]->channel);
      channels.shareds[i]->end = &*ends_[i];
    }
  }

  void begin(Index index, bool is_first, bool is_last) {
    each([&](SharedEnd<CValue>& end) { end.begin(index, is_first, is_last); });
  }
  void pass_on() {
    each([](SharedEnd<CValue>& end) { end.pass_on(); });
  }
  void end(bool early) {
    for (std::size_t i = 0; i < channels_.count; ++i) channels_.shareds[i]->end = nullptr;
    each([&](SharedEnd<CValue>& end) { end.end(early); });
  }

 private:
  template <class Call>
  void each(Call&& call) {
    for (std::size_t i = 0; i < channels_.count; ++i) call(*ends_[i]);
  }

  CChannels& channels_;
  std::array<std::optional<SharedEnd<CValue>>, TOMBOLO_SVP_SHARED_CHANNELS> ends_;
};

}  // namespace tombolo::svp
