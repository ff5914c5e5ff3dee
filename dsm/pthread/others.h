// SPDX-License-Identifier: Apache-2.0
// Purpose: the objects of Pthreads that are counts in words: semaphores, readers-writer locks,
// barriers, and initialization that is done once. Each hands over by its lock, or tells and learns,
// so that a thread that goes on sees the stores of the thread that let it go.
//
// Invariants: POB1 a thread changes the count after it has handed over, and hands over again after
//                  it has seen the change. At a barrier, whose count says which threads have
//                  come, a thread tells its stores before, and learns of those of the others
//                  behind: no lock goes round.
//             POB2 the writer of a readers-writer lock has the lock for a span; readers have it for
//                  a moment only, so that they run at once.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads; without a
// deadline a wait has no end.
#pragma once

#include <functional>
#include <vector>

#include "dsm/pthread/deadline.h"
#include "dsm/pthread/object_table.h"

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

class ReadersWriterLocks {
 public:
  ReadersWriterLocks(ProgramMemory& memory, ObjectTable& objects)
      : memory_(memory), objects_(objects) {}

  int init(const void* lock);
  // EDEADLK if this thread has it for writing.
  int read(const void* lock, const Deadline* deadline);
  int write(const void* lock, const Deadline* deadline);
  int try_read(const void* lock);   // EBUSY
  int try_write(const void* lock);  // EBUSY
  int unlock(const void* lock);
  int destroy(const void* lock);

 private:
  bool enter_to_read(const Object& object);
  bool enter_to_write(const Object& object);
  std::uint64_t writing_by_self() const;
  bool writes(const Object& object);

  ProgramMemory& memory_;
  ObjectTable& objects_;
};

class Barriers {
 public:
  Barriers(ProgramMemory& memory, ObjectTable& objects) : memory_(memory), objects_(objects) {}

  int init(const void* barrier, std::uint64_t count);  // EINVAL
  // `last` of one of the threads.
  int wait(const void* barrier, bool& last);
  int destroy(const void* barrier);

 private:
  ProgramMemory& memory_;
  ObjectTable& objects_;
};

// Calls `routine` unless `done` is set, one thread at a time; it is set when the routine returns.
class Once {
 public:
  Once(ProgramMemory& memory, ObjectTable& objects) : memory_(memory), objects_(objects) {}
  int call(int& done, void (*routine)());

 private:
  ProgramMemory& memory_;
  ObjectTable& objects_;
};

}  // namespace tombolo::dsm
