// SPDX-License-Identifier: Apache-2.0
// Purpose: initialization that is done once (pthread_once).
//
// Invariants: ONC1 the routine runs under the object's lock, so that a thread that finds it done
//                  sees its stores.
// Thread safety: an object belongs to one thread. Errors are the numbers of Pthreads; a wait
// without a deadline has no end.
#pragma once

#include "dsm/threads/objects/object_table.h"

namespace tombolo::dsm {

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
