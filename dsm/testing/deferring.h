// SPDX-License-Identifier: Apache-2.0
// Purpose: a transport that does as little as its concept allows: puts, differences, exposed pages
// and updates are done by complete() alone, the last one first where their order is open. A
// protocol that relies on more fails on it.
// Thread safety: that of T.
#pragma once

#include <utility>
#include <vector>

#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm::testing {

template <Transport T>
class Deferring {
 public:
  using Core = typename T::Core;
  using Layout = typename T::Layout;
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return T::take(layout, shape);
  }
  static std::size_t data_bytes(const Shape& shape) { return T::data_bytes(shape); }

  Deferring(Core& core, Layout layout, const Shape& shape) : transport_(core, layout, shape) {}

  Core& core() { return transport_.core(); }
  const Shape& shape() const { return transport_.shape(); }
  Status get(Page page, std::span<std::byte> out) { return transport_.get(page, out); }
  Status get_exposed(Thread thread, std::uint32_t slot, std::span<std::byte> out) {
    return transport_.get_exposed(thread, slot, out);
  }
  Status get_update(Lock lock, std::uint64_t index, Update& update) {
    return transport_.get_update(lock, index, update);
  }

  Status put(Page page, std::span<const std::byte> in) { return defer(Kind::put, page, in); }
  Status accumulate_xor(Page page, std::span<const std::byte> diff) {
    return defer(Kind::accumulate, page, diff);
  }
  Status expose(std::uint32_t slot, std::span<const std::byte> in) {
    return defer(Kind::expose, slot, in);
  }
  Status put_update(Lock lock, std::uint64_t index, const Update& update) {
    updates_.push_back({lock, index, update});
    return {};
  }

  Status complete() {
    while (!updates_.empty()) {
      const Logged logged = updates_.back();
      updates_.pop_back();
      TOMBOLO_TRY(transport_.put_update(logged.lock, logged.index, logged.update));
    }
    while (!pages_.empty()) {
      const Deferred deferred = std::move(pages_.back());
      pages_.pop_back();
      TOMBOLO_TRY(perform(deferred));
    }
    return transport_.complete();
  }

 private:
  enum class Kind : std::uint8_t { put, accumulate, expose };
  struct Deferred {
    Kind kind;
    std::uint64_t at;
    PageBytes bytes;
  };
  struct Logged {
    Lock lock;
    std::uint64_t index;
    Update update;
  };

  Status defer(Kind kind, std::uint64_t at, std::span<const std::byte> in) {
    pages_.push_back({kind, at, {in.begin(), in.end()}});
    return {};
  }
  Status perform(const Deferred& deferred) {
    switch (deferred.kind) {
      case Kind::put:
        return transport_.put(deferred.at, deferred.bytes);
      case Kind::accumulate:
        return transport_.accumulate_xor(deferred.at, deferred.bytes);
      default:
        return transport_.expose(static_cast<std::uint32_t>(deferred.at), deferred.bytes);
    }
  }

  T transport_;
  std::vector<Deferred> pages_;
  std::vector<Logged> updates_;
};

}  // namespace tombolo::dsm::testing
