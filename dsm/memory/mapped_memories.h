// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program on one coherent host, whose processes have inherited it by a
// fork: all map the same pages (mapped_memory.h).
//
// Limits: it looks after no other process: the team that forked them does (TEM1, TEM2).
// Thread safety: as ProgramMemories.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "dsm/memory/mapped_memory.h"
#include "dsm/memory/program_memories.h"
#include "dsm/records/process_records.h"
#include "host/segments/segment.h"
#include "runtime/engines/host_core.h"

namespace tombolo::dsm {

// The words and locks of such a program lie in one block, of its first process: the others are not
// there yet when it is made.
class InheritedWords {
 public:
  using Memory = MappedMemory<runtime::HostCore>;

  explicit InheritedWords(const MemoryPlan& plan);
  std::size_t bytes() const { return bytes_; }
  // `block`: zeros at first.
  std::unique_ptr<Memory> enter(Thread self, std::byte* block, const Observer& observer) const;

 private:
  Shape shape_;
  std::span<std::byte> pages_;
  Memory::Layout layout_;
  std::size_t bytes_;
};

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
