// SPDX-License-Identifier: Apache-2.0
// Purpose: streams that the program opens, of which each call of the C library is behind one of
// ours: the lock that they share, and the list of those that are open.
//
//   const Held held(stream);                       // in each call on a stream
//   return opened(TOMBOLO_HOST(fopen)(...));       // in each call that makes one
//
// Invariants: STC1 a stream of the program is locked by a recursive mutex of the program's memory
//                  while a call on it is made.
//             STC2 streams that are open when the program exits are flushed, as far as the list
//                  goes, but for those on which a thread is in a call.
// Limits: stdin, stdout and stderr are each process's own: flush_output().
// Thread safety: one thread in each process.
#pragma once

#include <cstdio>

#include "pthreads/calls/calls.h"

namespace tombolo::dsm {

// The stream's lock, if it is the program's.
class Held {
 public:
  explicit Held(FILE* stream) : stream_(stream), own_(pthreads_for(stream)) {
    if (own_ != nullptr) own_->mutexes.lock(stream, MutexKind::recursive);
  }
  ~Held() {
    if (own_ != nullptr) own_->mutexes.unlock(stream_, MutexKind::recursive);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  FILE* stream_;
  Pthreads* own_;
};

// A stream that the C library has made; may be null. Returns it.
FILE* opened(FILE* stream);
// Likewise, of freopen().
FILE* opened_again(FILE* stream);
// Before the C library closes it.
void closes(FILE* stream);

}  // namespace tombolo::dsm
