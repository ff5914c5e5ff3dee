// SPDX-License-Identifier: Apache-2.0
// Purpose: handlers of the two signals that the C library keeps for itself: its functions let no
// program use them, wait for them or hold them back. So they reach a thread that blocks all others.
//
//   TOMBOLO_TRY(handle_reserved_signal(first_reserved, &on_signal, SA_RESTART));
//
// The C library has uses of its own, which programs under this must not need: the first one ends
// threads by pthread_cancel(), the second one changes the users of all threads (setuid(), in a
// process of several threads; its handler comes with the process's second thread).
//
// Thread safety: yes.
#pragma once

#include <signal.h>

#include "base/status.h"

namespace tombolo::host {

inline constexpr int first_reserved = 32;
inline constexpr int second_reserved = 33;

// On the alternate stack of the thread that has it, if there is one. `flags`: SA_RESTART or 0.
// Errors: io (the kernel refuses the handler).
Status handle_reserved_signal(int signal, void (*handler)(int, siginfo_t*, void*),
                              unsigned long flags);

}  // namespace tombolo::host
