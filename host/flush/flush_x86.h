// SPDX-License-Identifier: Apache-2.0
// Purpose: flush.h's instructions on x86-64.
//
//   clwb        writes a line back; it may stay in the cache          weakly ordered
//   clflushopt  writes a line back and drops it                       weakly ordered
//   clflush     the same, one line after the other                    ordered with stores
//   movnt*      stores past the caches; a line found there is evicted weakly ordered
//   maskmovdqu  the same for any choice of 16 bytes                   weakly ordered
//
// Non-temporal stores carry a mask of the bytes that they write, so that they never write back a
// neighbour's byte (flush.h, HF1).
// Thread safety: yes.
#pragma once

#include <cpuid.h>
#include <immintrin.h>

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

// Copies whole lines past the caches; `to` is the start of a line.
struct CopyLines {
  const char* name;
  bool (*exists)();
  void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes);
};

// True if partial lines are byte-exact whatever the mapping (flush.h, HF1).
inline constexpr bool byte_exact = true;
inline constexpr const char* remark = "";

struct Identification {
  unsigned leaf1_edx = 0;
  unsigned leaf7_ebx = 0;
};
// Asked once: in a virtual machine cpuid takes microseconds.
inline const Identification& identify() {
  static const Identification found = [] {
    Identification id;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) id.leaf1_edx = edx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) id.leaf7_ebx = ebx;
    return id;
  }();
  return found;
}
inline bool has_clflush() { return (identify().leaf1_edx >> 19 & 1) != 0; }
inline bool has_clflushopt() { return (identify().leaf7_ebx >> 23 & 1) != 0; }
inline bool has_clwb() { return (identify().leaf7_ebx >> 24 & 1) != 0; }
// These also ask whether the kernel saves the wide registers.
inline bool has_avx() { return __builtin_cpu_supports("avx") != 0; }
inline bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
inline bool always() { return true; }

inline constexpr std::size_t line = 64;

inline void clwb(const std::byte* first, const std::byte* end) {
  for (; first < end; first += line) asm volatile("clwb %0" ::"m"(*first) : "memory");
}
inline void clflushopt(const std::byte* first, const std::byte* end) {
  for (; first < end; first += line) asm volatile("clflushopt %0" ::"m"(*first) : "memory");
}
inline void clflush(const std::byte* first, const std::byte* end) {
  for (; first < end; first += line) asm volatile("clflush %0" ::"m"(*first) : "memory");
}

// Best guess first.
inline constexpr std::array<LineOperation, 3> write_backs = {
    LineOperation{"clwb", has_clwb, clwb}, LineOperation{"clflushopt", has_clflushopt, clflushopt},
    LineOperation{"clflush", has_clflush, clflush}};
inline constexpr std::array<LineOperation, 2> invalidates = {
    LineOperation{"clflushopt", has_clflushopt, clflushopt},
    LineOperation{"clflush", has_clflush, clflush}};

// A whole line in one store leaves the write-combining buffer at once.
[[gnu::target("avx512f")]] inline void stream_avx512(std::byte* to, const std::byte* from,
                                                     std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
}
[[gnu::target("avx")]] inline void stream_avx(std::byte* to, const std::byte* from,
                                              std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
}
inline void stream_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
}
inline constexpr std::array<CopyLines, 3> streams = {CopyLines{"avx512", has_avx512, stream_avx512},
                                                     CopyLines{"avx", has_avx, stream_avx},
                                                     CopyLines{"sse2", always, stream_sse2}};

// sfence: earlier stores, movnt and clwb/clflushopt are complete before any later store.
inline void write_back_fence() { asm volatile("sfence" ::: "memory"); }
// lfence: all earlier loads are complete before the first line is dropped; clflushopt is not
// ordered with loads.
inline void before_invalidate() { asm volatile("lfence" ::: "memory"); }
// mfence: sfence would not keep later loads from overtaking clflushopt.
inline void invalidate_fence() { asm volatile("mfence" ::: "memory"); }
inline void full_fence() { asm volatile("mfence" ::: "memory"); }

inline void stream_word(std::byte* to, const std::byte* from) {
  long long v = 0;
  std::memcpy(&v, from, sizeof v);
  _mm_stream_si64(reinterpret_cast<long long*>(to), v);
}

// Fewer than 16 bytes that lie in one aligned block of 16.
inline void stream_masked(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t skip = reinterpret_cast<std::uintptr_t>(to) % 16;
  alignas(16) std::array<std::byte, 16> block = {};
  alignas(16) std::array<std::byte, 16> mask = {};
  for (std::size_t i = 0; i < bytes; ++i) {
    block[skip + i] = from[i];
    mask[skip + i] = std::byte{0x80};
  }
  _mm_maskmoveu_si128(_mm_load_si128(reinterpret_cast<const __m128i*>(block.data())),
                      _mm_load_si128(reinterpret_cast<const __m128i*>(mask.data())),
                      reinterpret_cast<char*>(to - skip));
}

// Any bytes of one line: movnti where 4 or 8 aligned bytes allow it, maskmovdqu for odd bytes.
inline void stream_part(std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(to) % 8;
    std::size_t step = 8 - misplaced < bytes ? 8 - misplaced : bytes;
    if (step == 8) {
      stream_word(to, from);
    } else if (misplaced % 4 == 0 && step == 4) {
      int v = 0;
      std::memcpy(&v, from, sizeof v);
      _mm_stream_si32(reinterpret_cast<int*>(to), v);
    } else {
      stream_masked(to, from, step);
    }
    to += step;
    from += step;
    bytes -= step;
  }
}

// x86 keeps loads in order, and stores after loads: only the compiler must be told.
inline std::uint64_t load_ordered(const std::uint64_t* word) {
  const std::uint64_t v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  tsan_acquire(word);
  return v;
}
// movnti writes these 8 bytes and no neighbours; sfence: they are in memory before a later store.
// Bytes published or drained before are there already (by their own fence).
inline void store_ordered(std::uint64_t* word, std::uint64_t v, const LineOperation&) {
  tsan_release(word);
  asm volatile("movnti %1, %0" : "=m"(*word) : "r"(v) : "memory");
  write_back_fence();
}

}  // namespace tombolo::host::flush::cpu
