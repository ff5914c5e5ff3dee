// SPDX-License-Identifier: Apache-2.0
// Purpose: a link between sites of one test, by queues; and a reach of memory that lies in the
// same process, which notes its calls.
// Thread safety: one thread at a time.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "svp/links/link.h"

namespace tombolo::svp::testing {

class QueueLink {
 public:
  struct Letter {
    VirtualChannel channel;
    Kind kind;
    std::vector<std::byte> bytes;
  };
  using Post = std::map<Site, std::deque<Letter>>;  // by receiver

  // `room`: letters that a receiver keeps.
  QueueLink(Post& post, Site self, std::size_t room, std::size_t most_bytes)
      : post_(post), self_(self), room_(room), most_bytes_(most_bytes) {}

  Site self() const { return self_; }
  Site sites() const { return 2; }
  std::size_t most_bytes() const { return most_bytes_; }
  bool try_send(const VirtualChannel& to, Kind kind, std::span<const std::byte> bytes) {
    auto& letters = post_[to.peer];
    if (letters.size() == room_) return false;
    letters.push_back({{to.opener, self_, to.number}, kind, {bytes.begin(), bytes.end()}});
    return true;
  }
  template <class Take>
  bool poll(Take&& take) {
    auto& letters = post_[self_];
    bool any = false;
    while (!letters.empty()) {
      const Letter& first = letters.front();
      if (!take(Message{first.channel, first.kind, first.bytes})) break;
      letters.pop_front();
      any = true;
    }
    return any;
  }
  Status wait() { return {}; }

 private:
  Post& post_;
  Site self_;
  std::size_t room_;
  std::size_t most_bytes_;
};
static_assert(Link<QueueLink>);

struct NotingReach {
  bool direct = false;
  bool shows = false;
  std::string done{};

  bool copies(Site) const { return direct; }
  Status get(Site, std::uint64_t address, void* to, std::size_t bytes) {
    done += "get ";
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
  Status put(Site, std::uint64_t address, const void* from, std::size_t bytes) {
    done += "put ";
    std::memcpy(reinterpret_cast<void*>(address), from, bytes);
    return {};
  }
  bool can_show(Site, const void*, std::size_t) const { return shows; }
  void publish(const void*, std::size_t) { done += "publish "; }
  void refresh(void*, std::size_t) { done += "refresh "; }
  void* map(Site, std::uint64_t address, std::size_t) {
    done += "map ";
    return reinterpret_cast<void*>(address);
  }
  void unmap(Site, std::uint64_t, void*, std::size_t, bool written) {
    done += written ? "unmap-written " : "unmap ";
  }
};
static_assert(Reach<NotingReach>);

// One with an engine for arrays of at least so many bytes.
struct EngineReach : NotingReach {
  std::size_t least_bytes = 0;

  bool engine_copies(Site, const void*, std::size_t bytes) const { return bytes >= least_bytes; }
  Status engine_get(Site site, std::uint64_t address, void* to, std::size_t bytes) {
    done += "engine-";
    return get(site, address, to, bytes);
  }
  Status engine_put(Site site, std::uint64_t address, const void* from, std::size_t bytes) {
    done += "engine-";
    return put(site, address, from, bytes);
  }
};
static_assert(CopiesByEngine<EngineReach>);

}  // namespace tombolo::svp::testing
