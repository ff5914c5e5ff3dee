// SPDX-License-Identifier: Apache-2.0
// Purpose: the transport as a concept: how a thread reaches pages at their homes, snapshots of
// pages that other threads keep, the updates that travel with a lock, and words for
// synchronization. 003 table 5.1 lists the operations of Samhita's; those that a protocol needs:
//
//   table 5.1                 here
//   scl_get                   get, get_exposed, get_update
//   scl_put                   put, expose, put_update
//   scl_fetch_add, _atomic_*  the words of core(): any machine of machine/contract.h, so that the
//                             locks and barriers of sync/ run on it as they are
//   scl_wait                  complete
//   (a server applies diffs)  accumulate_xor: no server has to answer
//
// Connections, memory registration and messages are the business of a transport alone.
//
// Invariants: DTR1 put, accumulate_xor, expose and put_update may be done at any moment up to the
//                  return of complete(). Every get that follows a load of a word that was stored
//                  after complete() sees them.
//             DTR2 accumulate_xor changes those bytes of the page alone whose difference is not
//                  zero, and is atomic for each byte against others of its kind.
//             DTR3 put of a page and accumulate_xor to it at once are the caller's error.
// Thread safety: one thread for each transport.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "dsm/protocol/shape.h"
#include "machine/contract.h"

namespace tombolo::dsm {

// A change of a page, one line of memory: of the `bytes` bytes from `offset` on those that are
// `changed`, the first by the lowest bit; or the whole page without its contents (bytes == 0).
struct Update {
  static constexpr std::size_t capacity = 32;
  Page page = 0;
  std::uint64_t version = 0;  // of the page, with the change
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t changed = 0;
  std::array<std::byte, capacity> contents{};

  // As many bytes that are all changed.
  static constexpr std::uint32_t all(std::size_t bytes) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << bytes) - 1);
  }
};
static_assert(sizeof(Update) == 64);

template <class T>
concept Transport = machine::Core<typename T::Core> &&
    requires(T& t, Page page, Thread thread, std::uint32_t slot, Lock lock, std::uint64_t index,
             std::span<std::byte> out, std::span<const std::byte> in, Update& update,
             const Update& changed) {
  { t.core() } -> std::same_as<typename T::Core&>;
  { t.shape() } -> std::convertible_to<const Shape&>;
  // A whole page at its home.
  { t.get(page, out) } -> std::same_as<Status>;
  { t.put(page, in) } -> std::same_as<Status>;
  // The page at its home, exclusive or `in`, which is as long as a page.
  { t.accumulate_xor(page, in) } -> std::same_as<Status>;
  // A page that a thread lets others get, in its slot (below shape().cached_pages).
  { t.expose(slot, in) } -> std::same_as<Status>;
  { t.get_exposed(thread, slot, out) } -> std::same_as<Status>;
  // Place `index` (below shape().updates) of a lock's log. The holder of the lock alone uses it.
  { t.put_update(lock, index, changed) } -> std::same_as<Status>;
  { t.get_update(lock, index, update) } -> std::same_as<Status>;
  // All of the above that this thread has begun is done.
  { t.complete() } -> std::same_as<Status>;
};

}  // namespace tombolo::dsm
