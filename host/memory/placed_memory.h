// SPDX-License-Identifier: Apache-2.0
// Purpose: puts shared memory in the place of the variables of the running program, and behind
// them: their contents stay, and forked processes share it from then on.
// Thread safety: for a process with one thread: a store of another one to the variables meanwhile
// would be lost.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"

namespace tombolo::host {

// The memory at `shared`, which this process maps with MAP_SHARED, lies at `place`, too: whole
// pages. The first `filled` bytes are copied to it, and nothing else may lie there. Errors:
// unsupported if it does, no_memory; then nothing has changed.
Status place_in_front(std::byte* shared, std::span<std::byte> place, std::size_t filled);

}  // namespace tombolo::host
