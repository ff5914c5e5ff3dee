// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of a program on one coherent host, whose processes have inherited it by a
// fork: all map the same pages, so that synchronization moves nothing and only waits.
//
// Its locks and words are those of sync/, over the core of the host.
//
// Invariants: IHM1 pause() sleeps on the word that was loaded last, if it still has the value that
//                  it had then: each store to it ends the sleep. At most `longest_sleep` at a
//                  time, for loops that look at something else besides.
// Limits: it looks after no other process: the team that forked them does (TEM1, TEM2).
// Thread safety: InheritedMemory as ProgramMemory.
#pragma once

#include <utility>

#include "dsm/memory/program_memories.h"
#include "dsm/records/process_records.h"
#include "dsm/threads/waited.h"
#include "host/segments/segment.h"
#include "runtime/engines/host_core.h"
#include "sync/locks/sleeping_mutex.h"
#include "sync/watched_word.h"

namespace tombolo::dsm {

class InheritedMemories final : public ProgramMemories {
 public:
  explicit InheritedMemories(WantedRecords records = {}) : wanted_(std::move(records)) {}

  runtime::Agreed make(runtime::Collective<Job>& all, const MemoryPlan& plan) override;
  Status enter(Thread thread, std::unique_ptr<ProgramMemory>& out) override;
  void note_counts(bool thread_has_ended) override;
  void tell_counts(Thread memory_servers) override;
  Observer observer() override;

 private:
  Status make(const MemoryPlan& plan);

  WantedRecords wanted_;
  MemoryPlan plan_;
  host::Segment runtime_;                    // words and locks
  std::unique_ptr<ProcessRecords> records_;  // null: none are wanted
};

class InheritedMemory final : public ProgramMemory {
 public:
  using Core = runtime::HostCore;

  // Places in the memory of the runtime, which all processes share.
  struct Layout {
    machine::Offset words = 0;
    machine::Offset locks = 0;
    machine::Offset sleepers = 0;  // a count for all words of the same remainder
    std::size_t bytes = 0;
  };
  static Layout take(const MemoryPlan& plan);

  // `shared`: zeros at first.
  InheritedMemory(Thread self, const MemoryPlan& plan, std::byte* shared,
                  const Observer& observer = {});

  Thread self() const override { return core_.self(); }
  Thread threads() const override { return plan_.threads; }
  std::span<std::byte> memory() const override { return plan_.at; }
  std::size_t page_bytes() const override;
  void record(const void*, std::size_t) override {}

  WordIndex words() const override { return plan_.words; }
  std::uint64_t load(WordIndex word) override;
  void store(WordIndex word, std::uint64_t value) override;
  std::uint64_t exchange(WordIndex word, std::uint64_t value) override;
  std::uint64_t fetch_add(WordIndex word, std::uint64_t value) override;
  std::uint64_t compare_exchange(WordIndex word, std::uint64_t expected,
                                 std::uint64_t desired) override;

  Lock locks() const override { return plan_.locks; }
  Status acquire(Lock lock) override;
  Status try_acquire(Lock lock, bool& taken) override;
  Status release(Lock lock) override;
  // Operations on words order all that is stored here.
  Status hand_over(Lock) override { return {}; }
  // unsupported: the number of threads of such a program changes.
  Status barrier() override;
  Status reduce(std::uint64_t& value, Combine combine) override;

  Status pause() override;
  void paused_enough() override { pauses_ = 0; }
  Status close() override { return {}; }

 private:
  sync::WatchedWord<Core> at(WordIndex word);
  Core::Word lock_at(Lock lock);

  MemoryPlan plan_;
  Core core_;
  // The first ones: a word of this core is a pointer, and they follow each other.
  Core::Word words_;
  Core::Word locks_;
  Core::Word sleepers_;
  sync::SleepingMutex<Core> mutex_;
  Waited waited_;
  WordIndex looked_at_ = 0;  // IHM1
  std::uint64_t seen_ = 0;
  std::uint32_t pauses_ = 0;
};

}  // namespace tombolo::dsm
