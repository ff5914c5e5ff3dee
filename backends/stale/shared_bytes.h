// SPDX-License-Identifier: Apache-2.0
// Purpose: access to memory that other cores write at the same time. Relaxed atomic accesses keep
// this defined in C++ and quiet under the thread sanitizer; order comes from the sync words.
// Also masks of bytes: bit i stands for byte i of a line.
// Thread safety: yes for the shared side; the private side belongs to the caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tombolo::stale {

inline constexpr std::size_t line_bytes = 64;

using ByteMask = std::uint64_t;
static_assert(sizeof(ByteMask) * 8 == line_bytes);

// Bits [first, first + count).
constexpr ByteMask byte_mask(std::size_t first, std::size_t count) {
  return (count >= line_bytes ? ~ByteMask{0} : (ByteMask{1} << count) - 1) << first;
}

// The bytes in which a and b differ.
inline ByteMask differing(const std::byte* a, const std::byte* b, std::size_t bytes) {
  ByteMask mask = 0;
  if (std::memcmp(a, b, bytes) == 0) [[likely]]
    return mask;
  for (std::size_t i = 0; i < bytes; ++i) mask |= ByteMask{a[i] != b[i]} << i;
  return mask;
}

namespace shared {

template <class T>
std::atomic_ref<T> at(const std::byte* p) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(const_cast<std::byte*>(p)));
}
inline bool is_word(const std::byte* p, std::size_t left) {
  return left >= 8 && reinterpret_cast<std::uintptr_t>(p) % 8 == 0;
}

// Calls visit.operator()<T>(offset) for the bytes [0, bytes) of `p` in the largest aligned units T.
template <class Visit>
void in_units(const std::byte* p, std::size_t bytes, Visit&& visit) {
  for (std::size_t i = 0; i < bytes;) {
    if (is_word(p + i, bytes - i)) {
      visit.template operator()<std::uint64_t>(i);
      i += 8;
    } else {
      visit.template operator()<std::uint8_t>(i);
      ++i;
    }
  }
}

inline void load(std::byte* to, const std::byte* memory, std::size_t bytes) {
  in_units(memory, bytes, [&]<class T>(std::size_t i) {
    const T v = at<T>(memory + i).load(std::memory_order_relaxed);
    std::memcpy(to + i, &v, sizeof v);
  });
}

inline void store(std::byte* memory, const std::byte* from, std::size_t bytes) {
  in_units(memory, bytes, [&]<class T>(std::size_t i) {
    T v;
    std::memcpy(&v, from + i, sizeof v);
    at<T>(memory + i).store(v, std::memory_order_relaxed);
  });
}

// Stores and returns in `old` exactly the bytes that were replaced.
inline void swap(std::byte* memory, const std::byte* from, std::byte* old, std::size_t bytes) {
  in_units(memory, bytes, [&]<class T>(std::size_t i) {
    T v;
    std::memcpy(&v, from + i, sizeof v);
    T before = at<T>(memory + i).load(std::memory_order_relaxed);
    // A value that is there already needs no exchange: the store took place at that moment.
    if (before != v) before = at<T>(memory + i).exchange(v, std::memory_order_relaxed);
    std::memcpy(old + i, &before, sizeof before);
  });
}

// Replaces `seen` by `wanted` unit by unit, and leaves alone units that have changed since.
inline void replace(std::byte* memory, const std::byte* seen, const std::byte* wanted,
                    std::size_t bytes) {
  in_units(memory, bytes, [&]<class T>(std::size_t i) {
    T from;
    T to;
    std::memcpy(&from, seen + i, sizeof from);
    std::memcpy(&to, wanted + i, sizeof to);
    if (from == to) return;
    T now = from;
    if (at<T>(memory + i).compare_exchange_strong(now, to, std::memory_order_relaxed)) return;
    if constexpr (sizeof(T) > 1) {
      for (std::size_t b = i; b < i + sizeof(T); ++b) {
        auto old = static_cast<std::uint8_t>(seen[b]);
        const auto desired = static_cast<std::uint8_t>(wanted[b]);
        if (old != desired)
          at<std::uint8_t>(memory + b)
              .compare_exchange_strong(old, desired, std::memory_order_relaxed);
      }
    }
  });
}

}  // namespace shared
}  // namespace tombolo::stale
