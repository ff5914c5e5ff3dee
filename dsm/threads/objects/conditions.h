// SPDX-License-Identifier: Apache-2.0
// Purpose: the condition variables of Pthreads. Programs build barriers upon them that wait without
// a loop: a thread goes on only if it was signalled.
//
// The words of a condition: its mutex, and the first and the last waiting thread + 1.
//
// Invariants: PCD1 a thread is in the queue before it unlocks the program's mutex, so that a signal
//                  under that mutex finds it.
//             PCD2 the queue changes under the mutex word; a thread is taken off it once, by a
//                  signal, which it then sees, or by itself when its time is over.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads.
#pragma once

#include "dsm/threads/objects/mutexes.h"

namespace tombolo::dsm {

class Conditions {
 public:
  Conditions(ProgramMemory& memory, ObjectTable& objects, Mutexes& mutexes)
      : memory_(memory), objects_(objects), mutexes_(mutexes) {}

  // With `deadline`: ETIMEDOUT, EINVAL. EPERM if a checked mutex is not this thread's.
  int wait(const void* condition, const void* mutex, MutexKind kind, const Deadline* deadline);
  int signal(const void* condition);
  int broadcast(const void* condition);
  int destroy(const void* condition);

 private:
  struct Queue {
    WordIndex mutex = 0, first = 0, last = 0;
  };
  struct Cancelled;
  Queue find(const void* condition);
  void lock(const Queue& queue);
  void unlock(const Queue& queue) { memory_.store(queue.mutex, 0); }
  void join(const Queue& queue);
  bool leave(const Queue& queue);
  std::uint64_t take_first(const Queue& queue);
  bool wake_first(const Queue& queue);
  void wake_one(const Queue& queue);

  ProgramMemory& memory_;
  ObjectTable& objects_;
  Mutexes& mutexes_;
};

}  // namespace tombolo::dsm
