// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the program behind the calls of tombolo/dsm.h: its start and
// end, its memory, and the numbers of its locks and words that are handed out.
// Thread safety: the thread that makes it, alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsm/api/collective_blocks.h"
#include "dsm/api/job.h"
#include "dsm/servers/compute_server.h"
#include "runtime/counters/counters.h"
#include "runtime/records/trace_file.h"

namespace tombolo::dsm {

class Program {
 public:
  // Together with the other processes of the job, if a launcher has started this one; else alone.
  // Ends the process, with a message of one process of the job, where that cannot be. In a memory
  // server it does not return: the process serves the others, and ends with them.
  Program();

  ProgramMemory& memory() { return server_->memory(); }
  CollectiveBlocks& blocks() { return *blocks_; }

  // Of the locks and words that are not used yet; all threads take them together.
  Lock take_lock();
  WordIndex take_words(const char* call, WordIndex count);
  // For atomic operations of instrumented code; none of those that are handed out.
  Lock atomic_locks() const { return most_mutexes; }
  static constexpr Lock atomic_lock_count = 256;

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
  Status open_trace();
  void tell(const runtime::Agreed& failed);
  std::vector<runtime::Counters::Row> hottest_pages();
  void write_counters(const std::vector<runtime::Counters::Row>& pages);
  void write_trace();
  Status write_trace_in_turn(std::uint64_t zero);

  static constexpr Lock most_mutexes = 1024;

  std::unique_ptr<Job> exchange_;
  std::optional<runtime::Collective<Job>> all_;
  ComputeServer::Request request_;
  std::unique_ptr<ComputeServer> server_;
  std::unique_ptr<CollectiveBlocks> blocks_;
  runtime::TraceFile trace_;
  Lock next_lock_ = 0;
  WordIndex next_word_ = 0;
};

}  // namespace tombolo::dsm
