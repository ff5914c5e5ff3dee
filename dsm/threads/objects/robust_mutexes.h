// SPDX-License-Identifier: Apache-2.0
// Purpose: the part of robust mutexes of Pthreads that others lack: a thread that ends with one
// hands it on, and the next owner is told so.
//
//   return robust.taken(mutex, mutexes.lock(mutex, kind), kind);
//   robust.leaves(mutex); mutexes.unlock(mutex, kind);
//
// Invariants: RBM1 a word of the mutex says whether its last owner has ended with it, or has left
//                  it without pthread_mutex_consistent(): then no thread gets it any more. It is
//                  stored while the mutex is held.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads.
#pragma once

#include <cstdint>
#include <vector>

#include "dsm/threads/objects/mutexes.h"

namespace tombolo::dsm {

class RobustMutexes {
 public:
  RobustMutexes(ProgramMemory& memory, ObjectTable& objects, Mutexes& mutexes)
      : memory_(memory), objects_(objects), mutexes_(mutexes) {}

  // Behind a call that takes the mutex and has returned `error`. EOWNERDEAD: it is taken all the
  // same; ENOTRECOVERABLE: it is not.
  int taken(const void* mutex, int error, MutexKind kind);
  int make_consistent(const void* mutex);  // EINVAL
  // Before a call that gives it back.
  void leaves(const void* mutex);
  // Before the call that ends its use.
  void ends(const void* mutex);
  // After a wait for a condition, in which it was given away. As taken().
  int comes_back(const void* mutex, MutexKind kind);
  // The thread ends: others get its mutexes.
  void owner_ends();

 private:
  enum State : std::uint64_t { consistent, owner_has_died, not_recoverable };
  struct Held {
    const void* mutex;
    MutexKind kind;
    std::uint32_t count;
    bool is_inconsistent;
  };
  Held* held(const void* mutex);
  WordIndex word_of(const void* mutex);

  ProgramMemory& memory_;
  ObjectTable& objects_;
  Mutexes& mutexes_;
  std::vector<Held> held_;
};

}  // namespace tombolo::dsm
