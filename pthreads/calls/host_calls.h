// SPDX-License-Identifier: Apache-2.0
// Purpose: the C library's own functions, in front of which the library's of the same names stand.
// They serve objects outside of the program's memory: those of libraries, which each process has
// for itself.
//
// Invariants: HCA1 all are looked up while the library is loaded: a process that is forked later
//                  looks up none. A look-up takes the dynamic linker's lock, and a thread that held
//                  it at the fork is not there to give it back (host/processes/shared_fork.h).
//             HCA2 a call that comes before that, from the constructor of another library, looks up
//                  its own; so does a call of a function that only a later library brings.
// Thread safety: yes.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace tombolo::dsm {

// The next definition of a function behind this library's. `Name::text` is its name.
template <class Name>
class NextFunction {
 public:
  static void* get() {
    static_cast<void>(&at_load_);  // else it would not be made
    // relaxed: all that look for it find the same one.
    void* function = found_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = dlsym(RTLD_NEXT, Name::text());
      if (function == nullptr) static_cast<void>(dlerror());  // it is not for the program
      found_.store(function, std::memory_order_relaxed);
    }
    return function;
  }

 private:
  inline static constinit std::atomic<void*> found_{nullptr};
  inline static const bool at_load_ = get() != nullptr;  // HCA1
};

}  // namespace tombolo::dsm

// TOMBOLO_NEXT("pthread_mutex_lock"): its address, or null.
#define TOMBOLO_NEXT(literal)                         \
  ([]() {                                             \
    struct Name {                                     \
      static const char* text() { return literal; }   \
    };                                                \
    return ::tombolo::dsm::NextFunction<Name>::get(); \
  }())

// TOMBOLO_HOST(pthread_mutex_lock)(mutex)
#define TOMBOLO_HOST(name) (reinterpret_cast<decltype(&::name)>(TOMBOLO_NEXT(#name)))
