// SPDX-License-Identifier: Apache-2.0
// Purpose: readers-writer locks of Pthreads, each a count of readers and the number of a writer, in
// words.
//
// Invariants: RWL1 a thread changes the count after it has handed over by the object's lock, and
//                  hands over again after it has seen the change: so it sees the stores of the
//                  thread that let it go.
//             RWL2 the writer has the object's lock for a span; readers have it for a moment only,
//                  so that they run at once.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads; a wait
// without a deadline has no end.
#pragma once

#include "dsm/threads/objects/deadline.h"
#include "dsm/threads/objects/object_table.h"

namespace tombolo::dsm {

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

}  // namespace tombolo::dsm
