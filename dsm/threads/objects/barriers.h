// SPDX-License-Identifier: Apache-2.0
// Purpose: barriers of Pthreads, each a count of the threads that have come, in words.
//
// Invariants: BAR1 a thread tells its stores before it says that it has come, and learns of those
//                  of the others behind the barrier: no lock goes round.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads; a wait
// without a deadline has no end.
#pragma once

#include "dsm/threads/objects/object_table.h"

namespace tombolo::dsm {

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

}  // namespace tombolo::dsm
