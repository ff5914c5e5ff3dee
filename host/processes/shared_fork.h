// SPDX-License-Identifier: Apache-2.0
// Purpose: a forked process that has the descriptors, the working directory and the file mode mask
// of this one, not copies of them: a file that one opens or closes is so for the other. And the
// calls around a fork by which it finds the work of the runtime's threads done, not half done.
//
// The rule for all forks of Tombolo: a lock that another thread holds at the fork is held in the
// child for ever. So
//   - a thread of the runtime that may live at a fork holds nothing then, and has begun: it asks
//     for that by around_forks();
//   - a child, before it runs the program's code or another program, looks up no symbol (that takes
//     the linker's lock), allocates and frees nothing (an allocator's), uses no stream and no text
//     of the C++ library (both allocate), and makes no static variable of a function. It makes
//     system calls, with memory that was there before. The program's code, and the runtime's
//     around it, need more: they run where no thread of a library held a lock at the fork;
//   - it asks the kernel for its end with its parent's, and looks whether that is there still.
//
// Invariants: SFO1 the C library of the child takes the child's number for its own, as after a
//                  fork() of its own. Handlers of pthread_atfork() are not called.
// Limits: the program's own threads are its matter, as with fork(). The child runs on the caller's
// stack: where that lies in shared memory, call it on another one (host/stacks/other_stack.h).
// Thread safety: fork_sharing_files() by one thread at a time; around_forks() by any.
#pragma once

#include <sys/types.h>

namespace tombolo::host {

// As fork(). `signal` is sent to this process when the child ends; wait() without __WALL sees the
// child only if it is SIGCHLD.
pid_t fork_sharing_files(int signal);

// From now on, at each fork of this process by fork() or fork_sharing_files(): `before` is called
// before it, `after` in this process behind it, and `in_child` in a child that fork() has made. In
// the other one's child nothing is called, and signals are blocked as before the fork. The `before`
// of the last call comes first, and its `after` last. Never undone.
void around_forks(void (*before)(), void (*after)(), void (*in_child)());

}  // namespace tombolo::host
