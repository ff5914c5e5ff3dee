// SPDX-License-Identifier: Apache-2.0
// Purpose: the kernel's sleep on a word that processes of this host share, and the end of it.
// Thread safety: yes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace tombolo::host {

// The half of a word by which processes sleep on it: the one that changes with small numbers.
inline const std::uint32_t* low_half(const std::atomic<std::uint64_t>& word) {
  constexpr bool low_first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  return reinterpret_cast<const std::uint32_t*>(&word) + (low_first ? 0 : 1);
}

// Sleeps until woken, unless the word is not `seen`; at most so long. May return early.
inline void sleep_on(const std::uint32_t* word, std::uint32_t seen, std::uint32_t microseconds) {
  const timespec limit{microseconds / 1000000, (microseconds % 1000000) * 1000L};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

// Wakes up to `most` that sleep on the word.
inline void wake(const std::uint32_t* word, int most) {
  syscall(SYS_futex, word, FUTEX_WAKE, most, nullptr, nullptr, 0);
}

}  // namespace tombolo::host
