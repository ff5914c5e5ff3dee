// SPDX-License-Identifier: Apache-2.0
// Purpose: the mutexes of Pthreads: each is a lock of the program's memory, held for a span.
//
// Invariants: PMX1 the lock of a mutex is held from the first lock() of a thread to its last
//                  unlock(): a recursive one is counted here.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads.
#pragma once

#include <cstdint>
#include <vector>

#include "dsm/threads/objects/deadline.h"
#include "dsm/threads/objects/object_table.h"

namespace tombolo::dsm {

enum class MutexKind : std::uint8_t { normal, recursive, checked };

class Mutexes {
 public:
  Mutexes(ProgramMemory& memory, ObjectTable& objects) : memory_(memory), objects_(objects) {}

  // EDEADLK, EAGAIN (recursion), ENOMEM. A normal one that this thread has stops the program:
  // it would wait for ever.
  int lock(const void* mutex, MutexKind kind) { return take(mutex, kind, nullptr); }
  // ETIMEDOUT, EINVAL besides.
  int lock_until(const void* mutex, MutexKind kind, const Deadline& deadline) {
    return take(mutex, kind, &deadline);
  }
  // EBUSY.
  int try_lock(const void* mutex, MutexKind kind);
  // EPERM. To unlock a normal one that another thread has stops the program.
  int unlock(const void* mutex, MutexKind kind);
  // EBUSY if it is held.
  int destroy(const void* mutex);

 private:
  struct Held {
    Lock lock;
    std::uint32_t count;
  };
  Held* held(Lock lock);
  int take(const void* mutex, MutexKind kind, const Deadline* deadline);
  int take_again(Held& held, const void* mutex, MutexKind kind, const Deadline* deadline);
  int wait(Lock lock, const Deadline& deadline);
  int unlock_of_others(const void* mutex, Lock lock, MutexKind kind);

  ProgramMemory& memory_;
  ObjectTable& objects_;
  std::vector<Held> held_;
};

}  // namespace tombolo::dsm
