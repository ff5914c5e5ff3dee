// SPDX-License-Identifier: Apache-2.0
// Purpose: the sizes of a program's memory, from its settings, and how its threads wait: one rule
// for programs that call tombolo/dsm.h and for unchanged ones of Pthreads.
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "base/status.h"
#include "dsm/protocol/shape.h"
#include "machine/waiting.h"
#include "runtime/options/options.h"

namespace tombolo::dsm {

// The two kinds of programs differ by these alone.
struct ProgramNeeds {
  std::string_view of_program;  // behind the size of a cache, in a message
  // Fewer cannot hold the pages that it has open together.
  std::uint64_t fewest_cached_pages;
  std::uint32_t updates;  // as Shape
  // A cache holds as many streams of pages that are read ahead.
  std::uint32_t streams_in_cache;
};
extern const ProgramNeeds needs_of_calls;     // of tombolo/dsm.h
extern const ProgramNeeds needs_of_pthreads;  // of Pthreads, unchanged

struct SizesOfProgram {
  std::uint64_t memory_bytes = 0;
  std::uint64_t cache_bytes = 0;  // of each thread
  Thread threads = 1;
  Thread servers = 0;
  Lock locks = 1;
  Tuning tuning{};
};
// Errors: bad_configuration for a cache that is too small, and a memory that is too large.
Status shape_of(const ProgramNeeds& needs, const SizesOfProgram& sizes, Shape& out);

// bad_configuration where no process is left for a thread.
Status check_memory_servers(Thread servers, Thread processes);

// Whether the pages of a program in so many processes may lie in place (docs/decisions/0049). That
// takes address space in the region of each thread, of the whole memory, besides the homes; and the
// regions are made as if all of it were used.
bool can_lie_in_place(const runtime::Options& options, std::uint64_t memory_bytes,
                      Thread processes);

// How one of so many threads and memory servers waits for the others.
machine::WaitPolicy waiting_of(Thread cores);

}  // namespace tombolo::dsm
