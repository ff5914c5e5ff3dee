// SPDX-License-Identifier: Apache-2.0
// Purpose: the common parts of the calls that stand in the place of the C library's: the objects of
// this process, which of them are the program's, and how a call is refused.
// Thread safety: one thread in each process.
#pragma once

#include <pthread.h>

#include "dsm/pthread/conditions.h"
#include "dsm/pthread/host_calls.h"
#include "dsm/pthread/keys.h"
#include "dsm/pthread/mutexes.h"
#include "dsm/pthread/others.h"
#include "dsm/pthread/robust_mutexes.h"
#include "dsm/threads/waited.h"
#include "dsm/world/world.h"

namespace tombolo::dsm {

// Of one process.
struct Pthreads {
  explicit Pthreads(World& made);

  World& world;
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
// Those of this process if the object at `address` is in the program's memory, else null: then it
// is the C library's.
Pthreads* pthreads_for(const void* address);

MutexKind kind_of(const pthread_mutex_t* mutex);
bool is_robust(const pthread_mutex_t* mutex);

// Output of this thread's process is written before another thread is let go: so lines of several
// threads come in the program's order.
void flush_output();

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
