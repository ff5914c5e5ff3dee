// SPDX-License-Identifier: Apache-2.0
// Purpose: a host with few threads left, also for the root user, whom no limit of the kernel holds;
// and threads that begin as slowly as a test likes.
// To be included by one file of a test: it defines pthread_create(), which the C++ library calls.
// Thread safety: yes.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace tombolo::host::testing {

// How many can be started from now on; below zero: as many as the host has.
inline constinit std::atomic<int> threads_left{-1};

class FewThreads {
 public:
  explicit FewThreads(int number) { threads_left = number; }
  ~FewThreads() { threads_left = -1; }
  FewThreads(const FewThreads&) = delete;
  FewThreads& operator=(const FewThreads&) = delete;
};

// Each thread that is started from now on calls this first; null: no function is called.
inline constinit std::atomic<void (*)()> first_of_threads{nullptr};

struct ThreadStart {
  void* (*function)(void*);
  void* argument;
  void (*first)();
};
inline void* run_first(void* start) {
  const ThreadStart own = *static_cast<ThreadStart*>(start);
  delete static_cast<ThreadStart*>(start);
  own.first();
  return own.function(own.argument);
}

}  // namespace tombolo::host::testing

// A sanitizer's own pthread_create(), by the names that its versions give it: a thread that goes
// past it is none that the sanitizer looks at.
extern "C" __attribute__((weak)) int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*,
                                                                  void* (*)(void*), void*);
extern "C" __attribute__((weak)) int ___interceptor_pthread_create(pthread_t*,
                                                                   const pthread_attr_t*,
                                                                   void* (*)(void*), void*);

namespace tombolo::host::testing {

inline auto* real_pthread_create() {
  if (__interceptor_pthread_create != nullptr) return &__interceptor_pthread_create;
  if (___interceptor_pthread_create != nullptr) return &___interceptor_pthread_create;
  return reinterpret_cast<decltype(&__interceptor_pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
}

}  // namespace tombolo::host::testing

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
    void* argument) noexcept {
  using namespace tombolo::host::testing;  // NOLINT: this file's own
  static auto* const create = real_pthread_create();
  for (int left = threads_left; left >= 0;) {
    if (left == 0) return EAGAIN;
    if (threads_left.compare_exchange_weak(left, left - 1)) break;
  }
  void (*const first)() = first_of_threads;
  if (first == nullptr) return create(thread, attributes, function, argument);
  auto* const start = new ThreadStart{function, argument, first};
  const int error = create(thread, attributes, &run_first, start);
  if (error != 0) delete start;
  return error;
}
