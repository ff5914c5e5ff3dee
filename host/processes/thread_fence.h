// SPDX-License-Identifier: Apache-2.0
// Purpose: a fence in all threads of this process, called by one of them: the others need a fence
// of the compiler only. The kernel interrupts the processors that run one (membarrier(2), private
// expedited).
// Thread safety: yes.
#pragma once

namespace tombolo::host {

// Whether fence_threads() may be called: the kernel knows the call, and allows it. The first one of
// a process tells the kernel, which takes some milliseconds where the process has several threads.
bool can_fence_threads();

// Each thread of the process passes a full fence between the call and its return. Stops the program
// if the kernel, which has allowed the call before, refuses it.
void fence_threads();

}  // namespace tombolo::host
