// SPDX-License-Identifier: Apache-2.0
// Purpose: semaphores of Pthreads (sem_t), each a count in a word.
//
// Invariants: SEM1 a thread changes the count after it has handed over by the object's lock, and
//                  hands over again after it has seen the change: so it sees the stores of the
//                  thread that let it go.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads; a wait
// without a deadline has no end.
#pragma once

#include "dsm/threads/objects/deadline.h"
#include "dsm/threads/objects/object_table.h"

namespace tombolo::dsm {

class Semaphores {
 public:
  Semaphores(ProgramMemory& memory, ObjectTable& objects) : memory_(memory), objects_(objects) {}

  static constexpr std::uint64_t most = 0x7fffffff;  // SEM_VALUE_MAX

  int init(const void* semaphore, std::uint64_t value);
  int post(const void* semaphore);  // EOVERFLOW
  int wait(const void* semaphore, const Deadline* deadline);
  int try_wait(const void* semaphore);  // EAGAIN
  int value(const void* semaphore, int& out);
  int destroy(const void* semaphore);

 private:
  bool take(WordIndex count);

  ProgramMemory& memory_;
  ObjectTable& objects_;
};

}  // namespace tombolo::dsm
