// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls by which code of C++ makes the static variables of functions, one thread at a
// time. The C++ library's change a word of the program's memory by atomic instructions of its own.
//
// A program's code looks at the first byte of the guard before it calls: that is a load without a
// call, or with tombolo-c++ an atomic operation.
#include "dsm/threads/instrumented_code.h"
#include "pthreads/calls/calls.h"

using tombolo::dsm::MutexKind;
using tombolo::dsm::Pthreads;
using tombolo::dsm::pthreads_for;

namespace {

// Not zero when the variable is made.
char& done(long long* guard) { return *reinterpret_cast<char*>(guard); }

constexpr tombolo::dsm::AtomicChange made{.kind = tombolo::dsm::AtomicChange::Kind::exchange,
                                          .operand = 1};

// This library's variables that are zero at first: the linker sets the symbols.
extern "C" __attribute__((visibility("hidden"))) char __bss_start[];
extern "C" __attribute__((visibility("hidden"))) char _end[];

// The C++ library's call is for variables of other libraries. It looks at the program's variables,
// which may be closed; and one thread makes those of the runtime.
bool is_of_the_runtime(const void* guard) { return guard >= __bss_start && guard < _end; }

// The C++ library's call, or null: for the runtime's own variables, and where there is none.
#define OF_THE_LIBRARY(Call, name, guard) \
  (is_of_the_runtime(guard) ? nullptr : reinterpret_cast<Call>(TOMBOLO_NEXT(name)))

}  // namespace

// 1: the caller makes the variable, and then calls one of the other two.
TOMBOLO_PTHREAD_CALL int __cxa_guard_acquire(long long* guard) {
  Pthreads* const own = pthreads_for(guard);
  if (own == nullptr) {
    auto* const host = OF_THE_LIBRARY(int (*)(long long*), "__cxa_guard_acquire", guard);
    return host != nullptr ? host(guard) : done(guard) == 0;
  }
  const int error = own->mutexes.lock(guard, MutexKind::checked);
  TOMBOLO_CHECK(error == 0, "the static variable whose guard is at {} needs itself to be made",
                static_cast<const void*>(guard));
  if (done(guard) == 0) return 1;
  own->mutexes.unlock(guard, MutexKind::checked);
  return 0;
}

TOMBOLO_PTHREAD_CALL void __cxa_guard_release(long long* guard) {
  Pthreads* const own = pthreads_for(guard);
  if (own != nullptr) {
    // The thread that finds it so by an atomic operation has all stores to the variable.
    tombolo::dsm::change_atomically(guard, 1, made);
    own->mutexes.unlock(guard, MutexKind::checked);
  } else if (auto* const host =
                 OF_THE_LIBRARY(void (*)(long long*), "__cxa_guard_release", guard)) {
    host(guard);
  } else {
    done(guard) = 1;
  }
}

// By an exception: the next thread tries.
TOMBOLO_PTHREAD_CALL void __cxa_guard_abort(long long* guard) {
  Pthreads* const own = pthreads_for(guard);
  if (own != nullptr)
    own->mutexes.unlock(guard, MutexKind::checked);
  else if (auto* const host = OF_THE_LIBRARY(void (*)(long long*), "__cxa_guard_abort", guard))
    host(guard);
}
