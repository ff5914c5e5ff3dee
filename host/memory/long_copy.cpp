// SPDX-License-Identifier: Apache-2.0
// Purpose: see long_copy.h. The sanitizers do not see the bytes that a string instruction touches:
// they get memcpy.
// Thread safety: see there.
#include "host/memory/long_copy.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "host/memory/zero_memory.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TOMBOLO_HAS_STRINGS
#include <cpuid.h>
#endif

namespace tombolo::host {
namespace {
constexpr std::size_t line_bytes = 64;
constexpr std::size_t alias_bytes = 4096;  // addresses that differ by a multiple look alike
}  // namespace

#ifdef TOMBOLO_HAS_STRINGS

namespace {

bool announces_strings() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (ebx >> 9 & 1) != 0;
}

using Copy = void (*)(void*, const void*, std::size_t);
std::chrono::nanoseconds time_of(Copy copy, std::byte* to, const std::byte* from) {
  const auto start = std::chrono::steady_clock::now();
  copy(to, from, long_copy_bytes);
  return std::chrono::steady_clock::now() - start;
}

// The shortest of a few turns: other programs lengthen some.
bool measured_gain() {
  const ZeroMemory memory(2 * long_copy_bytes);
  if (!memory) return false;
  auto* const to = memory.as<std::byte>();
  std::byte* const from = to + long_copy_bytes;
  std::memset(to, 1, 2 * long_copy_bytes);
  constexpr int turns = 6;
  auto plain = std::chrono::nanoseconds::max();
  auto string = plain;
  const Copy by_memcpy = [](void* out, const void* in, std::size_t n) { std::memcpy(out, in, n); };
  for (int turn = 0; turn < turns; ++turn) {
    plain = std::min(plain, time_of(by_memcpy, to, from));
    string = std::min(string, time_of(copy_as_string, to, from));
  }
  return string < plain;
}

}  // namespace

bool gains_by_strings() {
  static const bool gains = announces_strings() && measured_gain();
  return gains;
}

void copy_as_string(void* to, const void* from, std::size_t bytes) {
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to) % line_bytes;
  const std::size_t head = std::min(bytes, (line_bytes - past_line) % line_bytes);
  std::memcpy(to, from, head);
  auto* at = static_cast<std::byte*>(to) + head;
  const auto* source = static_cast<const std::byte*>(from) + head;
  std::size_t left = bytes - head;
  asm volatile("rep movsb" : "+D"(at), "+S"(source), "+c"(left) : : "memory");
}

#else

bool gains_by_strings() { return false; }
void copy_as_string(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

bool far_enough(const void* to, const void* from) {
  const std::size_t apart =
      (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % alias_bytes;
  return apart == 0 || apart >= line_bytes;
}

void copy_long(void* to, const void* from, std::size_t bytes) {
  if (bytes >= long_copy_bytes && gains_by_strings() && far_enough(to, from))
    copy_as_string(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace tombolo::host
