// SPDX-License-Identifier: Apache-2.0
// Purpose: memory for arrays that a test has run out: defines operator new[] of the program whose
// one file includes this. Not beside the thread sanitizer, which has its own.
// Thread safety: one thread changes `most_array_bytes`, while no other makes arrays.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace tombolo::svp::testing {

inline constexpr std::size_t any_bytes = std::numeric_limits<std::size_t>::max();
inline std::size_t most_array_bytes = any_bytes;  // NOLINT: the test's. Larger ones find none.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool memory_can_run_out = false;
#else
inline constexpr bool memory_can_run_out = true;
#endif

}  // namespace tombolo::svp::testing

#if !defined(__SANITIZE_THREAD__)
void* operator new[](std::size_t bytes) {
  const bool fits = bytes <= tombolo::svp::testing::most_array_bytes;
  void* const at = fits ? std::malloc(bytes) : nullptr;
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }
#endif
