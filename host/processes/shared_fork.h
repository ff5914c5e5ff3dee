// SPDX-License-Identifier: Apache-2.0
// Purpose: a forked process that has the descriptors, the working directory and the file mode mask
// of this one, not copies of them: a file that one opens or closes is so for the other.
//
// Invariants: SFO1 the C library of the child takes the child's number for its own, as after a
//                  fork() of its own. Handlers of pthread_atfork() are not called.
// Limits: for a process with one thread. The child runs on the caller's stack: where that lies in
// shared memory, call it on another one (host/memory/other_stack.h).
// Thread safety: one thread at a time.
#pragma once

#include <sys/types.h>

namespace tombolo::host {

// As fork(). `signal` is sent to this process when the child ends; wait() without __WALL sees the
// child only if it is SIGCHLD.
pid_t fork_sharing_files(int signal);

}  // namespace tombolo::host
