// SPDX-License-Identifier: Apache-2.0
// Purpose: the common parts of the calls that stand in the place of the C library's: the objects of
// this process, which of them are the program's, and how a call is refused.
// Thread safety: one thread in each process.
#pragma once

#include <pthread.h>

#include <cstdio>

#include "dsm/threads/keys.h"
#include "dsm/threads/objects/barriers.h"
#include "dsm/threads/objects/conditions.h"
#include "dsm/threads/objects/mutexes.h"
#include "dsm/threads/objects/once.h"
#include "dsm/threads/objects/readers_writer_locks.h"
#include "dsm/threads/objects/robust_mutexes.h"
#include "dsm/threads/objects/semaphores.h"
#include "dsm/threads/waited.h"
#include "pthreads/calls/host_calls.h"
#include "pthreads/program/threaded_program.h"

namespace tombolo::dsm {

// Of one process.
struct Pthreads {
  explicit Pthreads(ThreadedProgram& made);

  ThreadedProgram& program;
  Mutexes mutexes;
  RobustMutexes robust_mutexes;
  Conditions conditions;
  Semaphores semaphores;
  ReadersWriterLocks readers_writer_locks;
  Barriers barriers;
  Once once;
  Keys keys;
  Waited waited;  // at barriers
  bool cancel_enabled = true;
};

// Those of this process; null before main, while libraries are set up.
Pthreads* pthreads();
Pthreads& pthreads_of(ThreadedProgram& program);
// Those of this process if the object at `address` is in the program's memory, else null: then it
// is the C library's.
inline Pthreads* pthreads_for(const void* address) {
  ThreadedProgram* const program = ThreadedProgram::here();
  return program != nullptr && program->owns(address) ? &pthreads_of(*program) : nullptr;
}

inline MutexKind kind_of(const pthread_mutex_t* mutex) {
  constexpr int kind_bits = 3;  // besides: robust, priorities, shared by processes
  switch (mutex->__data.__kind & kind_bits) {
    case PTHREAD_MUTEX_RECURSIVE:
      return MutexKind::recursive;
    case PTHREAD_MUTEX_ERRORCHECK:
      return MutexKind::checked;
    default:
      return MutexKind::normal;
  }
}
inline bool is_robust(const pthread_mutex_t* mutex) {
  constexpr int robust_bit = 16;
  return (mutex->__data.__kind & robust_bit) != 0;
}

// Output of this thread's process is written before another thread is let go: so lines of several
// threads come in the program's order.
inline void flush_output() {
  if (stdout->_IO_write_ptr != stdout->_IO_write_base) std::fflush(stdout);
}

// Output of the streams that the program has opened.
void flush_streams();

// Says once on stderr that the call is not there in a program whose threads run in processes.
// Returns ENOTSUP.
int refuse(const char* call, const char* why);

// Ends this thread if it was asked to end.
void end_if_cancelled();

}  // namespace tombolo::dsm

// In front of the definition of a call.
#define TOMBOLO_PTHREAD_CALL extern "C" __attribute__((visibility("default")))
