// SPDX-License-Identifier: Apache-2.0
// Purpose: flush.h's instructions on 64-bit Arm.
//
//   dc cvac   cleans a line to the point of coherency: writes it back, it stays
//   dc civac  cleans and drops a line
//   stnp      store pair, a hint that the line will not be needed again
//   dmb, dsb  order accesses and cache operations; dsb waits until they are complete
//
// Neither stnp nor any other store to cacheable memory passes the caches, and a cache writes back
// whole lines. Hence a part of a line is byte-exact only where the mapping is not cacheable, as
// drivers map device memory (flush.h, HF1). On a cacheable mapping stream_part drops the line
// before it stores, so that the neighbours' bytes that go back are as new as they can be; another
// host's store in between is lost.
// Whole lines carry no neighbours' bytes and are exact on any mapping.
//
// Barriers are for the full system (sy): the other hosts are in no shareability domain of ours.
// Thread safety: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "host/flush/flush_tsan.h"

namespace tombolo::host::flush::cpu {

// Does something to each line of [first, end); `first` is the start of a line.
struct LineOperation {
  const char* name;
  bool (*exists)();
  void (*apply)(const std::byte* first, const std::byte* end);
};

// Copies whole lines towards memory; `to` is the start of a line.
struct CopyLines {
  const char* name;
  bool (*exists)();
  void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes);
};

inline constexpr bool byte_exact = false;
inline constexpr const char* remark =
    "; parts of lines and sync words without atomics ask for a mapping that is not cacheable";

inline constexpr std::size_t line = 64;

// Cache type: the smallest line of all data caches, and the most that one write-back may take along
// (0: not told). Read once: a kernel may emulate the register.
inline std::uint64_t cache_type() {
  static const std::uint64_t type = [] {
    std::uint64_t value = 0;
    asm("mrs %0, ctr_el0" : "=r"(value));
    return value;
  }();
  return type;
}
inline std::size_t step() { return std::size_t{4} << (cache_type() >> 16 & 15); }
// Longer lines than the contract's would carry neighbours along.
inline bool has_lines_up_to_64() {
  const auto granule = cache_type() >> 24 & 15;
  return step() <= line && (granule == 0 || (std::size_t{4} << granule) <= line);
}

inline void cvac(const std::byte* first, const std::byte* end) {
  const std::size_t bytes = step();
  for (; first < end; first += bytes) asm volatile("dc cvac, %0" ::"r"(first) : "memory");
}
inline void civac(const std::byte* first, const std::byte* end) {
  const std::size_t bytes = step();
  for (; first < end; first += bytes) asm volatile("dc civac, %0" ::"r"(first) : "memory");
}
inline constexpr std::array<LineOperation, 1> write_backs = {
    LineOperation{"cvac", has_lines_up_to_64, cvac}};
inline constexpr std::array<LineOperation, 1> invalidates = {
    LineOperation{"civac", has_lines_up_to_64, civac}};

// dsb: the stores and cleanings before it are in memory before anything after it.
inline void write_back_fence() { asm volatile("dsb sy" ::: "memory"); }
// dmb: earlier loads are complete before the first line is dropped.
inline void before_invalidate() { asm volatile("dmb sy" ::: "memory"); }
// dsb: the lines are dropped before any later load.
inline void invalidate_fence() { asm volatile("dsb sy" ::: "memory"); }
inline void full_fence() { asm volatile("dmb sy" ::: "memory"); }

inline void stnp(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 16) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::memcpy(&low, from + i, 8);
    std::memcpy(&high, from + i + 8, 8);
    asm volatile("stnp %1, %2, [%0]" ::"r"(to + i), "r"(low), "r"(high) : "memory");
  }
  // The stores are in the cache: cleaned here, since drain() does not know where they went.
  cvac(to, to + bytes);
}
inline constexpr std::array<CopyLines, 1> streams = {CopyLines{"stnp", has_lines_up_to_64, stnp}};

// Any bytes of one line.
inline void stream_part(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto* start = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(to) &
                                                         ~std::uintptr_t{line - 1});
  civac(start, to + bytes);
  invalidate_fence();  // the stores must not fall into a stale copy of the line
  std::memcpy(to, from, bytes);
  cvac(start, to + bytes);  // complete with drain()
}
inline void stream_word(std::byte* to, const std::byte* from) { stream_part(to, from, 8); }

// dmb after the load: later loads and refreshes come after it (R5).
inline std::uint64_t load_ordered(const std::uint64_t* word) {
  const std::uint64_t v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  asm volatile("dmb sy" ::: "memory");
  tsan_acquire(word);
  return v;
}
inline void store_ordered(std::uint64_t* word, std::uint64_t v, const LineOperation& write_back) {
  tsan_release(word);
  // Behind all earlier loads and stores, and into a fresh copy of the line.
  asm volatile("dmb sy" ::: "memory");
  const auto* at = reinterpret_cast<const std::byte*>(word);
  const auto* start = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(at) &
                                                         ~std::uintptr_t{line - 1});
  civac(start, at + 8);
  invalidate_fence();  // the store must not fall into a stale copy of the line
  __atomic_store_n(word, v, __ATOMIC_RELEASE);
  write_back.apply(start, at + 8);
  write_back_fence();  // in memory before any later store
}

}  // namespace tombolo::host::flush::cpu
