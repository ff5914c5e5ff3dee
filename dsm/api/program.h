// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the program behind the calls of tombolo/dsm.h: its start and
// end, its memory, and the numbers of its locks and words that are handed out.
//
// Invariants: DPG1 where all threads run main(), locks, words, keys and blocks are taken by equal
//                  calls of all, and nothing is exchanged; where one thread creates the others,
//                  by any of them alone, and counted in words.
// Thread safety: the thread that makes it, alone.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dsm/allocator/memory_heap.h"
#include "dsm/api/collective_blocks.h"
#include "dsm/api/created_threads.h"
#include "dsm/memory/compute_server.h"
#include "dsm/memory/job.h"
#include "runtime/counters/counters.h"
#include "runtime/records/trace_file.h"

namespace tombolo::dsm {

class Program {
 public:
  // The threads that run main(): all, or the first one, which creates the others.
  enum class Start : std::uint8_t { all, first };

  // Together with the other processes of the job, if a launcher has started this one; else alone.
  // Ends the process, with a message of one process of the job, where that cannot be. In a memory
  // server it does not return: the process serves the others, and ends with them.
  explicit Program(Start start);

  ProgramMemory& memory() { return server_->memory(); }
  CollectiveBlocks& blocks() { return *blocks_; }
  // Null where all threads run main(), and before make_heap().
  MemoryHeap* heap() { return heap_ ? &*heap_ : nullptr; }
  Keys& keys() { return *keys_; }
  // Null where all threads run main().
  const CreatedThreads* threads() const { return threads_ ? &*threads_ : nullptr; }
  CreatedThreads* threads() { return threads_ ? &*threads_ : nullptr; }

  // Of the locks and words that are not used yet (DPG1).
  Lock take_lock();
  WordIndex take_words(const char* call, WordIndex count);
  // For atomic operations of instrumented code; none of those that are handed out.
  Lock atomic_locks() const { return most_mutexes; }
  static constexpr Lock atomic_lock_count = 256;
  // EAGAIN.
  int take_key(std::uint32_t& key, void (*destructor)(void*));
  // A part of the memory is for blocks that one thread alone takes. Errors: no_memory.
  Status make_heap(std::span<std::byte> place);

  // Together. The memory is given back, and the counters are written if they are wanted.
  void close();

  // Ends the process unless `status` is ok.
  static void must(const Status& status) {
    if (!status.ok()) [[unlikely]]
      give_up(status);
  }

 private:
  [[noreturn]] static void give_up(const Status& why);
  [[noreturn]] void serve();
  runtime::Agreed open();
  Status choose_sizes();
  void start_threads();
  std::uint64_t most_in_heap() const;
  Status open_trace();
  std::vector<runtime::Counters::Row> hottest_pages();
  void write_counters(const std::vector<runtime::Counters::Row>& pages);
  void write_trace();
  Status write_trace_in_turn(std::uint64_t zero);
  Status write_own_part(std::uint64_t draft, std::uint64_t zero);
  void gather_for_trace(const void* mine, void* everyones, std::size_t bytes);

  // Locks and words: of the program's user, then the runtime's own.
  static constexpr Lock most_mutexes = 1024;
  static constexpr WordIndex most_words = 4096;
  static constexpr WordIndex first_of_keys = most_words;
  static constexpr WordIndex locks_taken = first_of_keys + Keys::words;
  static constexpr WordIndex words_taken = locks_taken + 1;
  static constexpr WordIndex first_of_heap = words_taken + 1;
  WordIndex first_of_threads() const;

  Start start_;
  std::unique_ptr<Job> exchange_;
  std::optional<runtime::Collective<Job>> all_;
  ComputeServer::Request request_;
  std::unique_ptr<ComputeServer> server_;
  std::unique_ptr<CollectiveBlocks> blocks_;
  std::optional<MemoryHeap> heap_;
  std::optional<Keys> keys_;
  std::optional<CreatedThreads> threads_;
  runtime::TraceFile trace_;
  Lock next_lock_ = 0;
  WordIndex next_word_ = 0;
  std::uint32_t next_key_ = 0;
};

// That of this process, which has begun and not ended: else `call` is a mistake.
Program& program(const char* call);

}  // namespace tombolo::dsm
