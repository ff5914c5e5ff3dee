// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program whose processes were started together, on any hosts, by the
// launcher of a host MPI (transport `mpi`): each caches pages, as cached_memory.h has it, whose
// homes are at all of them. Each process has its own object, which is made where the others' are.
//
// Invariants: RMM1 make() and enter() are calls of all processes, with the same plan; a process
//                  learns from Agreement that another one has failed.
// Thread safety: as ProgramMemories.
#pragma once

#include "dsm/transport/mpi/one_sided.h"
#include "dsm/world/agreement.h"
#include "dsm/world/program_memories.h"
#include "runtime/options/options.h"

namespace tombolo::dsm {

class RemoteMemories final : public ProgramMemories {
 public:
  struct Settings {
    runtime::Statistics statistics = runtime::Statistics::off;
    std::uint64_t cache_bytes = 0;  // of each thread
    // As MissHandler::fail().
    void (*give_up)(const Status&) = nullptr;
  };
  // The job outlives it.
  RemoteMemories(OneSided& job, const Settings& settings) : job_(job), settings_(settings) {}

  Status make(const MemoryPlan& plan) override;
  Status enter(Thread thread, std::unique_ptr<ProgramMemory>& out) override;
  bool has_pages() const override { return true; }
  std::uint64_t open_at_once() const override { return settings_.cache_bytes / 4; }
  // Of this process alone.
  void tell_counts() override;
  Observer observer() override;

 private:
  OneSided& job_;
  Settings settings_;
  MemoryPlan plan_;
  Shape shape_;
};

}  // namespace tombolo::dsm
