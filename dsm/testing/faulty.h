// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose: transports and page stores that leave one operation out, so that a
// protocol on them is a broken twin of itself.
//
//   FaultyTransport<T, Omit::complete>   nothing is known to be done; likewise accumulate, put, ...
//   FaultyPages<Omit::invalidate>        old pages stay; of PrivatePages, or of another store
//
// Thread safety: those of T and S.
#pragma once

#include "dsm/protocol/transport.h"
#include "dsm/testing/private_pages.h"

namespace tombolo::dsm::testing {

enum class Omit : std::uint8_t {
  none,
  complete,
  accumulate,
  put,
  expose,
  update,  // of a lock's log
  invalidate,
  twin,
  protection,  // a page that was writable stays so
};

template <Transport T, Omit What>
class FaultyTransport : public T {
 public:
  using T::T;
  Status put(Page page, std::span<const std::byte> in) {
    return What == Omit::put ? Status() : T::put(page, in);
  }
  Status accumulate_xor(Page page, std::span<const std::byte> diff) {
    return What == Omit::accumulate ? Status() : T::accumulate_xor(page, diff);
  }
  Status expose(std::uint32_t slot, std::span<const std::byte> in) {
    return What == Omit::expose ? Status() : T::expose(slot, in);
  }
  Status put_update(Lock lock, std::uint64_t index, const Update& update) {
    return What == Omit::update ? Status() : T::put_update(lock, index, update);
  }
  Status complete() { return What == Omit::complete ? Status() : T::complete(); }
};

template <Omit What, class S = PrivatePages>
class FaultyPages : public S {
 public:
  using S::S;
  void invalidate(Page page) {
    if (What != Omit::invalidate) S::invalidate(page);
  }
  void make_twin(Page page) {
    if (What != Omit::twin) S::make_twin(page);
  }
  void forbid_writes(Page page) {
    if (What != Omit::protection) S::forbid_writes(page);
  }
};

}  // namespace tombolo::dsm::testing
