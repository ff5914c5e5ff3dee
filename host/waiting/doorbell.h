// SPDX-License-Identifier: Apache-2.0
// Purpose: lets a process sleep until a peer on the same host changes a word that it waits for.
// A doorbell lies at the head of each home's sync block. The sleeper announces itself, looks once
// more and sleeps on the ring count; the ringer looks whether any process sleeps.
//
// Invariants: DB1 a sleep is bounded, so a ring that misses the announcement costs time, not
//                 progress. Hence the ringer needs no fence between its store and its look at
//                 `sleepers`.
// Thread safety: any number of sleepers and ringers, in any process that maps the block.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace tombolo::host {

struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> rings;

  // Sleeps until rung or `microseconds` passed, unless ready() is already true.
  template <class Ready>
  void sleep(std::uint32_t microseconds, Ready&& ready) {
    const std::uint32_t seen = rings.load(std::memory_order_acquire);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!ready()) {
      const timespec limit{microseconds / 1000000, (microseconds % 1000000) * 1000L};
      syscall(SYS_futex, &rings, FUTEX_WAIT, seen, &limit, nullptr, 0);
    }
    sleepers.fetch_sub(1, std::memory_order_relaxed);  // only a hint for ringers (DB1)
  }

  void ring() {
    // relaxed: DB1 bounds the cost of a missed announcement.
    if (sleepers.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    rings.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
};
static_assert(sizeof(Doorbell) == 64);

}  // namespace tombolo::host
