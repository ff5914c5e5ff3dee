// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program whose processes were started together, on any hosts, by the
// launcher of a host MPI (transport `mpi`): each caches pages, as cached_memory.h has it, whose
// homes are at all of them, or at memory servers: the last of these processes, without a thread.
// Each process has its own object, which is made where the others' are.
//
// Invariants: RMM1 enter() is a call of all processes with a thread.
// Thread safety: as ProgramMemories.
#pragma once

#include <memory>

#include "dsm/memory/memory_kind.h"
#include "dsm/memory/program_memories.h"
#include "dsm/transport/mpi/one_sided.h"
#include "runtime/options/options.h"

namespace tombolo::dsm {

class RemoteMemories final : public ProgramMemories {
 public:
  struct Settings {
    runtime::Statistics statistics = runtime::Statistics::off;
    std::uint64_t cache_bytes = 0;  // of each thread
    Thread memory_servers = 0;      // of the job's processes
    Tuning tuning{};
    // As MissHandler::fail().
    void (*give_up)(const Status&) = nullptr;
  };
  // The job, one of the host MPI, outlives it.
  RemoteMemories(OneSided& job, const Settings& settings)
      : job_(job), settings_(settings), kind_(remote_kind(PageProtocol::release)) {}

  runtime::Agreed make(runtime::Collective<Job>& all, const MemoryPlan& plan) override;
  Status enter(Thread thread, std::unique_ptr<ProgramMemory>& out) override;
  bool has_pages() const override { return true; }
  Thread memory_servers() const override { return settings_.memory_servers; }
  std::uint64_t open_at_once() const override { return settings_.cache_bytes / 4; }
  // Of this process alone; not in a memory server, which counts nothing.
  void tell_counts(Thread memory_servers) override;
  Observer observer() override;

 private:
  Thread self() const { return static_cast<Thread>(job_.rank()); }
  bool has_thread() const { return self() < plan_.threads; }
  Status prepare();

  OneSided& job_;
  Settings settings_;
  std::unique_ptr<MemoryKind> kind_;
  MemoryPlan plan_;
  Shape shape_;
};

}  // namespace tombolo::dsm
