// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/objects/mutexes.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {

Mutexes::Held* Mutexes::held(Lock lock) {
  const auto found =
      std::find_if(held_.begin(), held_.end(), [=](const Held& h) { return h.lock == lock; });
  return found == held_.end() ? nullptr : &*found;
}

int Mutexes::take(const void* mutex, MutexKind kind, const Deadline* deadline) {
  const Object object = objects_.find(mutex);
  if (Held* const again = held(object.lock); again != nullptr)
    return take_again(*again, mutex, kind, deadline);
  if (deadline == nullptr) {
    must(memory_.acquire(object.lock));
  } else if (const int error = wait(object.lock, *deadline); error != 0) {
    return error;
  }
  held_.push_back({object.lock, 1});
  return 0;
}

int Mutexes::take_again(Held& held, const void* mutex, MutexKind kind, const Deadline* deadline) {
  if (kind == MutexKind::checked) return EDEADLK;
  if (kind == MutexKind::normal) {
    TOMBOLO_CHECK(deadline != nullptr,
                  "pthread_mutex_lock: the thread has the mutex at {} already and would wait for "
                  "itself",
                  mutex);
    return wait(held.lock, *deadline);
  }
  if (held.count == std::numeric_limits<std::uint32_t>::max()) return EAGAIN;
  ++held.count;
  return 0;
}

int Mutexes::wait(Lock lock, const Deadline& deadline) {
  bool taken = false;
  must(memory_.try_acquire(lock, taken));
  if (taken) return 0;
  if (!deadline.valid()) return EINVAL;
  bool late = false;
  wait_until(memory_, [&] {
    late = deadline.passed();
    if (!late) must(memory_.try_acquire(lock, taken));
    return taken || late;
  });
  return taken ? 0 : ETIMEDOUT;
}

int Mutexes::try_lock(const void* mutex, MutexKind kind) {
  const Object object = objects_.find(mutex);
  if (Held* const again = held(object.lock); again != nullptr) {
    if (kind != MutexKind::recursive) return EBUSY;
    return take_again(*again, mutex, kind, nullptr);
  }
  bool taken = false;
  must(memory_.try_acquire(object.lock, taken));
  if (!taken) return EBUSY;
  held_.push_back({object.lock, 1});
  return 0;
}

int Mutexes::unlock(const void* mutex, MutexKind kind) {
  const Object object = objects_.find(mutex);
  Held* const own = held(object.lock);
  if (own == nullptr) return unlock_of_others(mutex, object.lock, kind);
  if (--own->count > 0) return 0;
  // The last one, as a rule: to copy it would wait for the store of its count.
  if (own != &held_.back()) *own = held_.back();
  held_.pop_back();
  must(memory_.release(object.lock));
  return 0;
}

// Of one that no thread has, nothing is to be done.
int Mutexes::unlock_of_others(const void* mutex, Lock lock, MutexKind kind) {
  if (kind != MutexKind::normal) return EPERM;
  bool taken = false;
  must(memory_.try_acquire(lock, taken));
  TOMBOLO_CHECK(taken,
                "pthread_mutex_unlock: another thread has the mutex at {}; only the thread that "
                "locked a mutex may unlock it here",
                mutex);
  must(memory_.release(lock));
  return 0;
}

int Mutexes::destroy(const void* mutex) {
  const Object object = objects_.find(mutex);
  if (held(object.lock) != nullptr) return EBUSY;
  bool taken = false;
  must(memory_.try_acquire(object.lock, taken));
  if (!taken) return EBUSY;
  must(memory_.release(object.lock));
  objects_.remove(mutex);
  return 0;
}

}  // namespace tombolo::dsm
