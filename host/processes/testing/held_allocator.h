// SPDX-License-Identifier: Apache-2.0
// Purpose: the allocator, as another thread holds it at a fork: one that has no handlers of its own
// for forks. A child that allocates or frees then waits for ever.
// To be included by one file of a test: it defines operator new and delete.
// Thread safety: yes.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "host/processes/shared_fork.h"

namespace tombolo::host::testing {

inline constinit std::atomic<bool> allocator_is_held{false};

// From now on, at each fork of this process and of its children, and for ever in those.
inline void hold_allocator_at_forks() {
  static const pid_t holder = getpid();
  around_forks([] { allocator_is_held = true; }, [] { allocator_is_held = getpid() != holder; },
               nullptr);
}

}  // namespace tombolo::host::testing

// The thread sanitizer has operators of its own, and none of the two can take the other's place:
// there the allocator is not held.
#if !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
  while (tombolo::host::testing::allocator_is_held) sched_yield();
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept {
  while (tombolo::host::testing::allocator_is_held) sched_yield();
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
#endif
