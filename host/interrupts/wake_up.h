// SPDX-License-Identifier: Apache-2.0
// Purpose: a process wakes up a thread of another one that sleeps in a system call, which ends with
// EINTR, so that the thread may look whether it was asked to do something else.
//
//   serve_wake_ups();              // by the thread
//   wake_up(process);              // in any process
//   if (has_been_woken()) ...      // by the thread, behind a call that has failed with EINTR
//
// The signal is one that the C library keeps for itself: no program can use it or hold it back.
//
// Invariants: WKU1 a wake-up between the thread's look and its system call is not lost: another
//                  one follows after some milliseconds, and again until forget_wake_ups().
//             WKU2 while wake-ups are to restart system calls, none follows, and a call that the
//                  kernel can go on with does so.
//             WKU3 the signal of a process goes on to the thread that is served, whichever thread
//                  the kernel has given it to.
// Thread safety: one thread of a process is served at a time; wake_up() by any.
#pragma once

#include <sys/types.h>

#include "base/status.h"

namespace tombolo::host {

// Errors: io (the kernel refuses the handler).
Status serve_wake_ups();
// Whether the calling thread is the one.
bool wake_ups_are_served();
// False if there is no such process.
bool wake_up(pid_t process);

bool has_been_woken();
// Or will be, by a signal that waits while the calling thread is in a handler.
bool will_be_woken();
// The thread goes on.
void forget_wake_ups();
// Another one is to be served, if any.
void leave_wake_ups();
// From now on, until the call with false.
void restart_after_wake_ups(bool restart);

}  // namespace tombolo::host
