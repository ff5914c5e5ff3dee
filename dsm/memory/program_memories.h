// SPDX-License-Identifier: Apache-2.0
// Purpose: makes the memory of a program whose processes are forked from its first one: there
// once, and then for each process a ProgramMemory of its own.
//
//   TOMBOLO_AGREE(memories.make(all, plan));  // in the processes that are started, before others
//   TOMBOLO_TRY(memories.enter(2, memory));   // in the process of thread 2, which is one of these
//                                             // or was forked since
//
// Invariants: PMS1 memory of the plan's address and size is there in all of these processes after
//                  make(), at that address.
//             PMS2 the first `filled` bytes keep their contents, the rest is zero.
// Thread safety: one thread at a time in each process.
#pragma once

#include <cstdint>
#include <memory>

#include "dsm/memory/job.h"
#include "dsm/memory/memory_plan.h"
#include "dsm/records/observer.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class ProgramMemories {
 public:
  virtual ~ProgramMemories() = default;
  // All processes of the job call it with the same plan; the job outlives it. Errors: no_memory,
  // unsupported if other memory lies in the way.
  virtual runtime::Agreed make(runtime::Collective<Job>& all, const MemoryPlan& plan) = 0;
  // `thread` is 0 in the first process. Not in a memory server.
  virtual Status enter(Thread thread, std::unique_ptr<ProgramMemory>& out) = 0;
  // Whether the memory is pages that a process opens and closes. The kernel cannot reach closed
  // ones.
  virtual bool has_pages() const { return false; }
  // Processes without a thread that are the homes of all of it (003 section 5.3), numbered behind
  // those of the threads. 0: the processes of the threads are the homes.
  virtual Thread memory_servers() const { return 0; }
  // Where it has pages: as many bytes are open at once for a system call, at least.
  virtual std::uint64_t open_at_once() const { return 0; }

  // Where counts are wanted: those of this process up to now, and its hottest pages at the end of a
  // thread, for the first process to tell. At the end, when the others have ended, it tells those
  // of all, and writes the trace. `memory_servers`: so many processes of these were there.
  virtual void note_counts(bool /*thread_has_ended*/) {}
  virtual void tell_counts(Thread /*memory_servers*/) {}
  // The records of this process, after enter(): for waits that the memory does not see.
  virtual Observer observer() { return {}; }
};

}  // namespace tombolo::dsm
