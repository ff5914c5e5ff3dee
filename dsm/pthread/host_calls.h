// SPDX-License-Identifier: Apache-2.0
// Purpose: the C library's own functions, in front of which the library's of the same names stand.
// They serve objects outside of the program's memory: those of libraries, which each process has
// for itself.
// Thread safety: yes.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace tombolo::dsm {

// The next definition of a function behind this library's.
inline void* next_function(std::atomic<void*>& found, const char* name) {
  // relaxed: all that look for it find the same one.
  void* function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = dlsym(RTLD_NEXT, name);
    found.store(function, std::memory_order_relaxed);
  }
  return function;
}

}  // namespace tombolo::dsm

// TOMBOLO_HOST(pthread_mutex_lock)(mutex)
#define TOMBOLO_HOST(name)                                                                   \
  ([]() {                                                                                    \
    static constinit std::atomic<void*> found{nullptr};                                      \
    return reinterpret_cast<decltype(&::name)>(::tombolo::dsm::next_function(found, #name)); \
  }())
