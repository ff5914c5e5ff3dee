// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of Pthreads on condition variables.
#include <cerrno>

#include "base/check.h"
#include "pthreads/calls/calls.h"

using tombolo::dsm::Deadline;
using tombolo::dsm::flush_output;
using tombolo::dsm::is_robust;
using tombolo::dsm::kind_of;
using tombolo::dsm::Pthreads;
using tombolo::dsm::pthreads;
using tombolo::dsm::pthreads_for;

namespace {

// Where pthread_cond_init() of the C library keeps the clock of the attributes.
clockid_t clock_of(const pthread_cond_t* condition) {
  constexpr unsigned monotonic = 2;
  return (condition->__data.__wrefs & monotonic) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

// A thread would wait for a signal that no other process can give. A machine of the runtime may
// have a thread of its own.
void check_own(const pthread_cond_t* condition) {
  static const char in_the_runtime = 0;
  Dl_info where{};
  Dl_info runtime{};
  const bool known = dladdr(condition, &where) != 0;
  const bool ours =
      known && dladdr(&in_the_runtime, &runtime) != 0 && where.dli_fbase == runtime.dli_fbase;
  TOMBOLO_CHECK(pthreads() == nullptr || ours,
                "pthread_cond_wait: the condition at {} is not the program's own: {} keeps it, of "
                "which each process has its own copy",
                static_cast<const void*>(condition), known ? where.dli_fname : "a library");
}

// A robust mutex may come back from a thread that has ended with it.
int waited(Pthreads& own, pthread_cond_t* condition, pthread_mutex_t* mutex,
           const Deadline* deadline) {
  const int error = own.conditions.wait(condition, mutex, kind_of(mutex), deadline);
  if (!is_robust(mutex)) return error;
  const int told = own.robust_mutexes.comes_back(mutex, kind_of(mutex));
  return told != 0 ? told : error;
}

}  // namespace

TOMBOLO_PTHREAD_CALL int pthread_cond_init(pthread_cond_t* condition,
                                           const pthread_condattr_t* attributes) noexcept {
  if (Pthreads* const own = pthreads_for(condition); own != nullptr)
    own->program.objects().remove(condition);  // of one that was not destroyed
  return TOMBOLO_HOST(pthread_cond_init)(condition, attributes);
}

TOMBOLO_PTHREAD_CALL int pthread_cond_destroy(pthread_cond_t* condition) noexcept {
  Pthreads* const own = pthreads_for(condition);
  return own != nullptr ? own->conditions.destroy(condition)
                        : TOMBOLO_HOST(pthread_cond_destroy)(condition);
}

TOMBOLO_PTHREAD_CALL int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  Pthreads* const own = pthreads_for(condition);
  if (own == nullptr) {
    check_own(condition);
    return TOMBOLO_HOST(pthread_cond_wait)(condition, mutex);
  }
  flush_output();
  return waited(*own, condition, mutex, nullptr);
}

TOMBOLO_PTHREAD_CALL int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                clockid_t clock, const timespec* until) {
  Pthreads* const own = pthreads_for(condition);
  if (own == nullptr) return TOMBOLO_HOST(pthread_cond_clockwait)(condition, mutex, clock, until);
  flush_output();
  const Deadline deadline{.clock = clock, .at = *until};
  return waited(*own, condition, mutex, &deadline);
}

TOMBOLO_PTHREAD_CALL int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                const timespec* until) {
  return pthread_cond_clockwait(condition, mutex, clock_of(condition), until);
}

TOMBOLO_PTHREAD_CALL int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  Pthreads* const own = pthreads_for(condition);
  if (own == nullptr) return TOMBOLO_HOST(pthread_cond_signal)(condition);
  flush_output();
  return own->conditions.signal(condition);
}

TOMBOLO_PTHREAD_CALL int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  Pthreads* const own = pthreads_for(condition);
  if (own == nullptr) return TOMBOLO_HOST(pthread_cond_broadcast)(condition);
  flush_output();
  return own->conditions.broadcast(condition);
}
