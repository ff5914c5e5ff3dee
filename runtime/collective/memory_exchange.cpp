// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/memory_exchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tombolo::runtime {
namespace {

constexpr std::size_t room_bytes = 960;

}  // namespace

struct MemoryExchange::Desk {
  alignas(64) std::atomic<std::uint64_t> offered;  // rounds
  alignas(64) std::byte rooms[2][room_bytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::size_t MemoryExchange::bytes_for(int size) {
  return sizeof(Desk) * static_cast<std::size_t>(size);
}

MemoryExchange::Desk& MemoryExchange::desk(int rank) const {
  return reinterpret_cast<Desk*>(memory_)[rank];
}

Status MemoryExchange::wait_for(Desk& peer) {
  machine::Waiter waiter(waiting_, idle_);
  // acquire: the room's bytes were stored before the count.
  const auto has_offered = [&] { return peer.offered.load(std::memory_order_acquire) >= round_; };
  while (!has_offered())
    if (Status error = waiter.step(); !error.ok())
      // The peer may have offered before it ended, or another one has ended: those that saw the
      // offer in time go on, and so does this process.
      return has_offered() ? Status() : error;
  return {};
}

// take(rank, bytes) of all processes, by rank. After an error no round follows.
template <class Take>
Status MemoryExchange::round(const void* mine, std::size_t bytes, Take&& take) {
  TOMBOLO_TRY(Status(broken_));
  ++round_;
  const std::size_t room = round_ % 2;
  Desk& own = desk(rank_);
  if (bytes > 0) std::memcpy(own.rooms[room], mine, bytes);
  // release: the peers read the room once they have seen the count.
  own.offered.store(round_, std::memory_order_release);
  for (int r = 0; r < size_; ++r) {
    Desk& peer = desk(r);
    if (broken_ = wait_for(peer); !broken_.ok()) return broken_;
    take(r, peer.rooms[room]);
  }
  return {};
}

Status MemoryExchange::gather(const void* mine, void* everyones, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(mine);
  auto* const to = static_cast<std::byte*>(everyones);
  for (std::size_t at = 0; at < bytes; at += room_bytes) {
    const std::size_t n = std::min(room_bytes, bytes - at);
    TOMBOLO_TRY(round(from + at, n, [&](int r, const std::byte* theirs) {
      std::memcpy(to + static_cast<std::size_t>(r) * bytes + at, theirs, n);
    }));
  }
  return {};
}

// All take part in each round, those too that have nothing to tell (MEX1).
Status MemoryExchange::broadcast(void* data, std::size_t bytes, int root) {
  auto* const both = static_cast<std::byte*>(data);
  for (std::size_t at = 0; at < bytes; at += room_bytes) {
    const std::size_t n = std::min(room_bytes, bytes - at);
    TOMBOLO_TRY(round(both + at, rank_ == root ? n : 0, [&](int r, const std::byte* theirs) {
      if (r == root && rank_ != root) std::memcpy(both + at, theirs, n);
    }));
  }
  return {};
}

bool MemoryExchange::all(bool yes) {
  const auto mine = static_cast<std::byte>(yes ? 1 : 0);
  bool every = true;
  const Status done = round(
      &mine, 1, [&](int, const std::byte* theirs) { every = every && *theirs != std::byte{0}; });
  return done.ok() && every;
}

}  // namespace tombolo::runtime
