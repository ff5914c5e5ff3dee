// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program whose processes each cache pages of it, over the cores of a
// machine (transport `window`): the pages' homes are made once, before the processes are forked.
// They are in regions of the threads, or of memory servers, processes without a thread.
//
// As cached_memory.h has it, on each machine.
// Thread safety: as ProgramMemories.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dsm/memory/memory_kind.h"
#include "dsm/memory/program_memories.h"
#include "dsm/records/process_records.h"
#include "host/memory/fixed_range.h"
#include "runtime/collective/shared_memory.h"
#include "runtime/options/options.h"

namespace tombolo::dsm {

class PagedMemories final : public ProgramMemories {
 public:
  struct Settings {
    runtime::Options options;
    WantedRecords records{};
    std::optional<std::uint64_t> cache_bytes{};  // of each thread
    Thread memory_servers = 0;                   // as ProgramMemories
    Tuning tuning{};
    // As MissHandler::fail().
    void (*give_up)(const Status&) = nullptr;
  };
  explicit PagedMemories(Settings settings) : settings_(std::move(settings)) {}

  // Besides: bad_configuration for settings that cannot be, unsupported if this host cannot catch
  // system calls or page faults.
  runtime::Agreed make(runtime::Collective<Job>& all, const MemoryPlan& plan) override;
  Status enter(Thread thread, std::unique_ptr<ProgramMemory>& out) override;
  bool has_pages() const override { return true; }
  Thread memory_servers() const override { return settings_.memory_servers; }
  std::uint64_t open_at_once() const override { return *settings_.cache_bytes / 4; }
  void note_counts(bool thread_has_ended) override;
  void tell_counts(Thread memory_servers) override;
  Observer observer() override;

 private:
  Status prepare(const MemoryPlan& plan);
  void plan_homes();
  runtime::SharedMemory::Surroundings surroundings() const;
  std::vector<std::uint64_t> held_pages(Thread memory_servers) const;

  Settings settings_;
  MemoryPlan plan_;
  Shape shape_;
  // It is chosen in make(), by the environment. That lies in the program's memory, which a process
  // that is forked later cannot read before it has entered.
  std::unique_ptr<MemoryKind> kind_;
  host::FixedRange behind_;  // the variables
  std::optional<runtime::SharedMemory> shared_;
  std::unique_ptr<ProcessRecords> records_;  // null: none are wanted
};

}  // namespace tombolo::dsm
