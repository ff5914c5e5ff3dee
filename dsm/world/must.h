// SPDX-License-Identifier: Apache-2.0
// Purpose: how code waits for a word, and how it ends where memory fails, in calls that have no way
// to say so: those of Pthreads.
// Thread safety: as the memory.
#pragma once

#include "base/check.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

// Called where the memory fails, if set: it ends the process.
inline void (*memory_has_failed)(const Status&) = nullptr;

inline void must(const Status& status) {
  if (status.ok()) [[likely]]
    return;
  if (memory_has_failed != nullptr) memory_has_failed(status);
  TOMBOLO_CHECK(status.ok(), "the program's memory: {}", status.message());
}

// Called between two looks of a wait, if set: it may end the thread or the process.
inline void (*between_looks)() = nullptr;

// Called around each call of the runtime that must not be interrupted by the end of the process, if
// set.
inline void (*runtime_begins)() = nullptr;
inline void (*runtime_ends)() = nullptr;
// Called behind such a call, when the program's handlers of signals may run again, if set.
inline void (*runtime_has_ended)() = nullptr;

// Called when the thread has begun or ended a span, with the number that it is in, if set.
inline void (*spans_have_changed)(int spans) = nullptr;

// Until ready() is true.
template <class Ready>
void wait_until(ProgramMemory& memory, Ready&& ready) {
  while (!ready()) {
    if (between_looks != nullptr) between_looks();
    must(memory.pause());
  }
  memory.paused_enough();
}

// Called between two looks where a thread may be cancelled, if set: it may end the thread by
// unwinding its stack.
inline void (*cancellation_point)() = nullptr;

template <class Ready>
void wait_cancellably(ProgramMemory& memory, Ready&& ready) {
  wait_until(memory, [&] {
    if (cancellation_point != nullptr) cancellation_point();
    return ready();
  });
}

inline void hand_over(ProgramMemory& memory, Lock lock) { must(memory.hand_over(lock)); }

}  // namespace tombolo::dsm
