// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/cached_memory.h"

#include "dsm/memory/default_sizes.h"
#include "dsm/memory/program_shape.h"
#include "host/faults/caught_calls.h"
#include "host/memory/memory_room.h"

namespace tombolo::dsm {
Status can_cache_pages() {
  if (!host::calls_on_stacks)
    return Status::unsupported("programs of Pthreads that cache pages, on this processor");
  TOMBOLO_TRY(host::can_catch_calls());
  return host::available(host::FaultMechanism::automatic);
}

std::uint64_t default_cache_bytes(Thread threads) {
  return default_cache_bytes(host::memory_room().bytes, threads,
                             needs_of_pthreads.fewest_cached_pages * host::page_bytes());
}

}  // namespace tombolo::dsm
