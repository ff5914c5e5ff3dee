// SPDX-License-Identifier: Apache-2.0
// Purpose: the places where the runtime of a program takes part in waits for words and in calls of
// its memory, as one object of function pointers; and waits and checks in calls that return no
// Status, as those of Pthreads do.
//
//   runtime_hooks.between_looks = &look_for_end;   // at the program's start
//   wait_until(memory, [&] { return memory.load(word) == 0; });
//
// Invariants: RTH1 a hook that is not set does nothing.
// Thread safety: hooks are set before the program's threads run; the functions are as the memory.
#pragma once

#include "base/check.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

struct RuntimeHooks {
  // The memory has failed: ends the process.
  void (*memory_has_failed)(const Status&) = [](const Status&) {};
  // Between two looks of a wait: may end the thread or the process.
  void (*between_looks)() = [] {};
  // Between two looks of a wait in which a thread may be cancelled: may end the thread by unwinding
  // its stack.
  void (*cancellation_point)() = [] {};
  // Around each call of the runtime that the end of the process must not interrupt.
  void (*runtime_begins)() = [] {};
  void (*runtime_ends)() = [] {};
  // Behind such a call, when the program's handlers of signals may run again.
  void (*runtime_has_ended)() = [] {};
  // The thread has begun or ended a span, and is in so many.
  void (*spans_have_changed)(int spans) = [](int) {};
  // The program has a handler of a signal.
  bool has_signal_handlers = false;
};

inline constinit RuntimeHooks runtime_hooks;

inline void must(const Status& status) {
  if (status.ok()) [[likely]]
    return;
  runtime_hooks.memory_has_failed(status);
  TOMBOLO_CHECK(status.ok(), "the program's memory: {}", status.message());
}

// Until ready() is true.
template <class Ready>
void wait_until(ProgramMemory& memory, Ready&& ready) {
  while (!ready()) {
    runtime_hooks.between_looks();
    must(memory.pause());
  }
  memory.paused_enough();
}

template <class Ready>
void wait_cancellably(ProgramMemory& memory, Ready&& ready) {
  wait_until(memory, [&] {
    runtime_hooks.cancellation_point();
    return ready();
  });
}

inline void hand_over(ProgramMemory& memory, Lock lock) { must(memory.hand_over(lock)); }

}  // namespace tombolo::dsm
