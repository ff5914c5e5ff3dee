// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of Pthreads on semaphores, readers-writer locks, barriers, initialization that
// is done once, and thread-specific data.
#include <semaphore.h>

#include <cerrno>

#include "base/check.h"
#include "pthreads/calls/calls.h"

using tombolo::dsm::Deadline;
using tombolo::dsm::end_if_cancelled;
using tombolo::dsm::flush_output;
using tombolo::dsm::Pthreads;
using tombolo::dsm::pthreads;
using tombolo::dsm::pthreads_for;
using tombolo::dsm::refuse;

namespace {

// Semaphores return -1 and set errno.
int by_errno(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace

// ---- Semaphores ---------------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int sem_init(sem_t* semaphore, int shared, unsigned value) noexcept {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_init)(semaphore, shared, value);
  return by_errno(own->semaphores.init(semaphore, value));
}

TOMBOLO_PTHREAD_CALL int sem_destroy(sem_t* semaphore) noexcept {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_destroy)(semaphore);
  return by_errno(own->semaphores.destroy(semaphore));
}

TOMBOLO_PTHREAD_CALL int sem_post(sem_t* semaphore) noexcept {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_post)(semaphore);
  flush_output();
  return by_errno(own->semaphores.post(semaphore));
}

TOMBOLO_PTHREAD_CALL int sem_wait(sem_t* semaphore) {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_wait)(semaphore);
  flush_output();
  end_if_cancelled();
  return by_errno(own->semaphores.wait(semaphore, nullptr));
}

TOMBOLO_PTHREAD_CALL int sem_trywait(sem_t* semaphore) noexcept {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_trywait)(semaphore);
  return by_errno(own->semaphores.try_wait(semaphore));
}

TOMBOLO_PTHREAD_CALL int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_clockwait)(semaphore, clock, until);
  flush_output();
  end_if_cancelled();
  const Deadline deadline{.clock = clock, .at = *until};
  return by_errno(own->semaphores.wait(semaphore, &deadline));
}

TOMBOLO_PTHREAD_CALL int sem_timedwait(sem_t* semaphore, const timespec* until) {
  return sem_clockwait(semaphore, CLOCK_REALTIME, until);
}

TOMBOLO_PTHREAD_CALL int sem_getvalue(sem_t* semaphore, int* value) noexcept {
  Pthreads* const own = pthreads_for(semaphore);
  if (own == nullptr) return TOMBOLO_HOST(sem_getvalue)(semaphore, value);
  return by_errno(own->semaphores.value(semaphore, *value));
}

TOMBOLO_PTHREAD_CALL sem_t* sem_open(const char*, int, ...) noexcept {
  errno = refuse("sem_open", "a semaphore with a name is another process's, too");
  return SEM_FAILED;
}

// ---- Readers-writer locks -----------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int pthread_rwlock_init(pthread_rwlock_t* lock,
                                             const pthread_rwlockattr_t* attributes) noexcept {
  Pthreads* const own = pthreads_for(lock);
  return own != nullptr ? own->readers_writer_locks.init(lock)
                        : TOMBOLO_HOST(pthread_rwlock_init)(lock, attributes);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_destroy(pthread_rwlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(lock);
  return own != nullptr ? own->readers_writer_locks.destroy(lock)
                        : TOMBOLO_HOST(pthread_rwlock_destroy)(lock);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(lock);
  return own != nullptr ? own->readers_writer_locks.read(lock, nullptr)
                        : TOMBOLO_HOST(pthread_rwlock_rdlock)(lock);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(lock);
  return own != nullptr ? own->readers_writer_locks.write(lock, nullptr)
                        : TOMBOLO_HOST(pthread_rwlock_wrlock)(lock);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(lock);
  return own != nullptr ? own->readers_writer_locks.try_read(lock)
                        : TOMBOLO_HOST(pthread_rwlock_tryrdlock)(lock);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(lock);
  return own != nullptr ? own->readers_writer_locks.try_write(lock)
                        : TOMBOLO_HOST(pthread_rwlock_trywrlock)(lock);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                                    const timespec* until) noexcept {
  Pthreads* const own = pthreads_for(lock);
  if (own == nullptr) return TOMBOLO_HOST(pthread_rwlock_clockrdlock)(lock, clock, until);
  const Deadline deadline{.clock = clock, .at = *until};
  return own->readers_writer_locks.read(lock, &deadline);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                                    const timespec* until) noexcept {
  Pthreads* const own = pthreads_for(lock);
  if (own == nullptr) return TOMBOLO_HOST(pthread_rwlock_clockwrlock)(lock, clock, until);
  const Deadline deadline{.clock = clock, .at = *until};
  return own->readers_writer_locks.write(lock, &deadline);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock,
                                                    const timespec* until) noexcept {
  return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, until);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock,
                                                    const timespec* until) noexcept {
  return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, until);
}

TOMBOLO_PTHREAD_CALL int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  Pthreads* const own = pthreads_for(lock);
  if (own == nullptr) return TOMBOLO_HOST(pthread_rwlock_unlock)(lock);
  flush_output();
  return own->readers_writer_locks.unlock(lock);
}

// ---- Barriers and initialization ----------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int pthread_barrier_init(pthread_barrier_t* barrier,
                                              const pthread_barrierattr_t* attributes,
                                              unsigned count) noexcept {
  Pthreads* const own = pthreads_for(barrier);
  return own != nullptr ? own->barriers.init(barrier, count)
                        : TOMBOLO_HOST(pthread_barrier_init)(barrier, attributes, count);
}

TOMBOLO_PTHREAD_CALL int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  Pthreads* const own = pthreads_for(barrier);
  if (own == nullptr) return TOMBOLO_HOST(pthread_barrier_wait)(barrier);
  flush_output();
  bool last = false;
  int error = 0;
  const auto wait = [&] { return error = own->barriers.wait(barrier, last), tombolo::Status(); };
  (void)own->waited.at_barrier(wait).ok();
  return error == 0 && last ? PTHREAD_BARRIER_SERIAL_THREAD : error;
}

TOMBOLO_PTHREAD_CALL int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  Pthreads* const own = pthreads_for(barrier);
  return own != nullptr ? own->barriers.destroy(barrier)
                        : TOMBOLO_HOST(pthread_barrier_destroy)(barrier);
}

TOMBOLO_PTHREAD_CALL int pthread_once(pthread_once_t* once, void (*routine)()) {
  Pthreads* const own = pthreads_for(once);
  return own != nullptr ? own->once.call(*once, routine)
                        : TOMBOLO_HOST(pthread_once)(once, routine);
}

// ---- Thread-specific data -----------------------------------------------------------------------

namespace {

// Keys of libraries that were made before main are the C library's.
constexpr pthread_key_t first_own_key = 1U << 16;

bool is_own_key(pthread_key_t key) { return key >= first_own_key && pthreads() != nullptr; }

}  // namespace

TOMBOLO_PTHREAD_CALL int pthread_key_create(pthread_key_t* key,
                                            void (*destructor)(void*)) noexcept {
  Pthreads* const own = pthreads();
  if (own == nullptr) return TOMBOLO_HOST(pthread_key_create)(key, destructor);
  std::uint32_t made = 0;
  const int error = own->keys.create(made, destructor);
  if (error == 0) *key = first_own_key + made;
  return error;
}

TOMBOLO_PTHREAD_CALL int pthread_key_delete(pthread_key_t key) noexcept {
  if (!is_own_key(key)) return TOMBOLO_HOST(pthread_key_delete)(key);
  return pthreads()->keys.remove(key - first_own_key);
}

TOMBOLO_PTHREAD_CALL int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  if (!is_own_key(key)) return TOMBOLO_HOST(pthread_setspecific)(key, value);
  return pthreads()->keys.set(key - first_own_key, value);
}

TOMBOLO_PTHREAD_CALL void* pthread_getspecific(pthread_key_t key) noexcept {
  if (!is_own_key(key)) return TOMBOLO_HOST(pthread_getspecific)(key);
  return pthreads()->keys.get(key - first_own_key);
}
