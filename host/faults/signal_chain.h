// SPDX-License-Identifier: Apache-2.0
// Purpose: the rest of a signal that a handler of ours does not want: the action that the program
// had before, as if ours were not there.
// Thread safety: for use in signal handlers.
#pragma once

#include <signal.h>

namespace tombolo::host {

// Calls the handler of `next`. If that is not a function, a fault of this thread is let come again,
// and a signal that a process has sent is sent again, with the action of `next` in force: the
// caller returns to the program at once.
void pass_on(int signal, siginfo_t* info, void* context, const struct sigaction& next);

// Whether pass_on() calls a function of the program.
bool has_handler(const struct sigaction& action);

}  // namespace tombolo::host
