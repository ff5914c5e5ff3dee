// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program of Pthreads whose processes each cache pages of it: the part of
// one process, with the memory of any kind that caches pages (memory_kind.h).
//
// Invariants: CHM1 the variables that the program has at the start are the first stores of its
//                  first thread: the others see them as all that was stored before they started.
//             CHM2 the protocol is release.h: a program of Pthreads knows of no regions.
//             CHM3 calls of a memory run on a stack that is no page of it (off_stack_memory.h).
// Thread safety: as ProgramMemories.
#pragma once

#include <memory>

#include "dsm/memory/memory_kind.h"
#include "dsm/memory/program_memories.h"

namespace tombolo::dsm {

// Whether this host can catch page faults and system calls as the caches need it. Errors:
// unsupported.
Status can_cache_pages();

// The bytes of a cache whose size is not given, so that the caches of all threads have memory.
std::uint64_t default_cache_bytes(Thread threads);

// The part of the process of the attachment's core. It replaces the memory at the plan's address;
// only the first one's variables are put back (CHM1). `parts`: all but the parts of the plan.
Status make_cached_memory(const MemoryPlan& plan, const MemoryKind& kind, MemoryKind::Parts parts,
                          std::unique_ptr<ProgramMemory>& out);

}  // namespace tombolo::dsm
