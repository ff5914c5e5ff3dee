// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of Pthreads on mutexes and spin locks.
#include <cerrno>

#include "pthreads/calls/calls.h"

using tombolo::dsm::Deadline;
using tombolo::dsm::flush_output;
using tombolo::dsm::is_robust;
using tombolo::dsm::kind_of;
using tombolo::dsm::MutexKind;
using tombolo::dsm::Pthreads;
using tombolo::dsm::pthreads_for;
using tombolo::dsm::refuse;

namespace {

// Behind a call that has returned `error`.
int taken(Pthreads& own, const pthread_mutex_t* mutex, int error) {
  return is_robust(mutex) ? own.robust_mutexes.taken(mutex, error, kind_of(mutex)) : error;
}

}  // namespace

TOMBOLO_PTHREAD_CALL int pthread_mutex_init(pthread_mutex_t* mutex,
                                            const pthread_mutexattr_t* attributes) noexcept {
  if (Pthreads* const own = pthreads_for(mutex); own != nullptr)
    own->program.objects().remove(mutex);  // of one that was not destroyed
  // The kind is kept in the object.
  return TOMBOLO_HOST(pthread_mutex_init)(mutex, attributes);
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
  Pthreads* const own = pthreads_for(mutex);
  if (own == nullptr) return TOMBOLO_HOST(pthread_mutex_destroy)(mutex);
  if (is_robust(mutex)) own->robust_mutexes.ends(mutex);
  return own->mutexes.destroy(mutex);
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  Pthreads* const own = pthreads_for(mutex);
  if (own == nullptr) return TOMBOLO_HOST(pthread_mutex_lock)(mutex);
  return taken(*own, mutex, own->mutexes.lock(mutex, kind_of(mutex)));
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  Pthreads* const own = pthreads_for(mutex);
  if (own == nullptr) return TOMBOLO_HOST(pthread_mutex_trylock)(mutex);
  return taken(*own, mutex, own->mutexes.try_lock(mutex, kind_of(mutex)));
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                                 const timespec* until) noexcept {
  Pthreads* const own = pthreads_for(mutex);
  if (own == nullptr) return TOMBOLO_HOST(pthread_mutex_clocklock)(mutex, clock, until);
  const Deadline deadline{.clock = clock, .at = *until};
  return taken(*own, mutex, own->mutexes.lock_until(mutex, kind_of(mutex), deadline));
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_timedlock(pthread_mutex_t* mutex,
                                                 const timespec* until) noexcept {
  return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until);
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  Pthreads* const own = pthreads_for(mutex);
  if (own == nullptr) return TOMBOLO_HOST(pthread_mutex_unlock)(mutex);
  flush_output();
  if (is_robust(mutex)) own->robust_mutexes.leaves(mutex);
  return own->mutexes.unlock(mutex, kind_of(mutex));
}

TOMBOLO_PTHREAD_CALL int pthread_mutex_consistent(pthread_mutex_t* mutex) noexcept {
  Pthreads* const own = pthreads_for(mutex);
  return own != nullptr ? own->robust_mutexes.make_consistent(mutex)
                        : TOMBOLO_HOST(pthread_mutex_consistent)(mutex);
}

TOMBOLO_PTHREAD_CALL int pthread_mutexattr_setpshared(pthread_mutexattr_t* attributes,
                                                      int shared) noexcept {
  if (shared == PTHREAD_PROCESS_SHARED && tombolo::dsm::pthreads() != nullptr)
    return refuse("pthread_mutexattr_setpshared", "other programs cannot have its mutexes");
  return TOMBOLO_HOST(pthread_mutexattr_setpshared)(attributes, shared);
}

// ---- Spin locks: mutexes by another name ------------------------------------------------------

namespace {

const void* address_of(const pthread_spinlock_t* lock) { return const_cast<const int*>(lock); }

}  // namespace

TOMBOLO_PTHREAD_CALL int pthread_spin_init(pthread_spinlock_t* lock, int shared) noexcept {
  if (Pthreads* const own = pthreads_for(address_of(lock)); own != nullptr)
    own->program.objects().remove(address_of(lock));
  return TOMBOLO_HOST(pthread_spin_init)(lock, shared);
}

TOMBOLO_PTHREAD_CALL int pthread_spin_destroy(pthread_spinlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(address_of(lock));
  return own != nullptr ? own->mutexes.destroy(address_of(lock))
                        : TOMBOLO_HOST(pthread_spin_destroy)(lock);
}

TOMBOLO_PTHREAD_CALL int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(address_of(lock));
  if (own == nullptr) return TOMBOLO_HOST(pthread_spin_lock)(lock);
  return own->mutexes.lock(address_of(lock), MutexKind::checked);
}

TOMBOLO_PTHREAD_CALL int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(address_of(lock));
  if (own == nullptr) return TOMBOLO_HOST(pthread_spin_trylock)(lock);
  return own->mutexes.try_lock(address_of(lock), MutexKind::checked);
}

TOMBOLO_PTHREAD_CALL int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(address_of(lock));
  if (own == nullptr) return TOMBOLO_HOST(pthread_spin_unlock)(lock);
  flush_output();
  return own->mutexes.unlock(address_of(lock), MutexKind::checked);
}
