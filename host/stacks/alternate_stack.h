// SPDX-License-Identifier: Apache-2.0
// Purpose: a stack for the signal handlers of a thread. A fault at a thread's own stack can be
// handled only on another one: where that has overflowed, or lies in memory whose pages are closed.
// Thread safety: for the calling thread.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace tombolo::host {

inline constexpr std::size_t alternate_stack_bytes = std::size_t{256} << 10;

// The calling thread has an alternate stack of that size or more, until it ends, if it takes no
// other one meanwhile. Below ours lies a page that cannot be accessed. Errors: no_memory; io if the
// thread is at work on a smaller one.
Status ensure_alternate_stack();

}  // namespace tombolo::host
