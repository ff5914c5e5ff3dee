// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program on one coherent host, whose processes have inherited it by a
// fork: all map the same pages (mapped_memory.h).
//
// Limits: it looks after no other process: the team that forked them does (TEM1, TEM2).
// Thread safety: as ProgramMemories.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "dsm/memory/inherited_words.h"
#include "dsm/memory/program_memories.h"
#include "dsm/records/process_records.h"
#include "host/segments/segment.h"

namespace tombolo::dsm {

class MappedMemories final : public ProgramMemories {
 public:
  explicit MappedMemories(WantedRecords records = {}) : wanted_(std::move(records)) {}

  runtime::Agreed make(runtime::Collective<Job>& all, const MemoryPlan& plan) override;
  Status enter(Thread thread, std::unique_ptr<ProgramMemory>& out) override;
  void note_counts(bool thread_has_ended) override;
  void tell_counts(Thread memory_servers) override;
  Observer observer() override;

 private:
  Status make(const MemoryPlan& plan);

  WantedRecords wanted_;
  std::byte* memory_ = nullptr;
  std::optional<InheritedWords> words_;
  host::Segment runtime_;                    // words and locks
  std::unique_ptr<ProcessRecords> records_;  // null: none are wanted
};

}  // namespace tombolo::dsm
