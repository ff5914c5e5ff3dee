// SPDX-License-Identifier: Apache-2.0
// Purpose: the facts that all processes of an unchanged threaded program have alike. Those that are
// started agree on them, over their job; those that are forked have them from the first process.
//
//   TOMBOLO_AGREE(facts.agree(all));
//
// Invariants: PFC1 values are changed at the start alone, and the team once more when it is forked.
// Thread safety: one thread in each process.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

#include "dsm/memory/program_memories.h"
#include "pthreads/program/program_layout.h"
#include "pthreads/program/server_team.h"

namespace tombolo::dsm {

// The C library's own functions, in whose places those of pthreads/calls/ stand.
struct HostThreads {
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
  int (*join)(pthread_t, void**) = nullptr;
  int (*create_key)(pthread_key_t*, void (*)(void*)) = nullptr;
  int (*set_specific)(pthread_key_t, const void*) = nullptr;
  void (*exit)(int) = nullptr;      // of the process
  void (*flush)() = nullptr;        // the streams of the program
  char* single_threaded = nullptr;  // the program's __libc_single_threaded; null: it has none
};

struct ProgramFacts {
  HostThreads host;
  void (*at_thread_end)() = nullptr;  // in the thread, when its function has ended in any way
  std::unique_ptr<ProgramMemories> kind;
  char** environment = nullptr;  // at the start, where no page of the memory is

  ProgramLayout layout{};
  std::span<std::byte> memory{};
  std::span<std::byte> bases{};  // private memory of each process, for the C library's threads
  pid_t first_process = 0;       // the number of the first one, on its host
  pthread_key_t end_key = 0;
  std::unique_ptr<ServerTeam> team{};

  // All processes of the job call it. `launched`: they are there; else one forks the others.
  runtime::Agreed agree(runtime::Collective<Job>& all, bool launched);
  // A process that runs a thread calls it. `at`: null, or an address.
  Status make_bases(std::byte* at);
  // What to do about an error of the start: empty, or a part of its message.
  std::string advice(const Status& why) const;

  bool owns(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return at >= memory.data() && at < memory.data() + memory.size();
  }
  std::span<std::byte> first_stack() const;
  std::span<std::byte> stack_of(Thread server) const;
  std::span<std::byte> base_of(Thread server) const;
  // How many memory servers count for tell_counts().
  void tell_counts() const { kind->tell_counts(team ? layout.memory_servers : 0); }

 private:
  MemoryPlan plan() const;
};

}  // namespace tombolo::dsm
