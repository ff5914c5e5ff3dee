// SPDX-License-Identifier: Apache-2.0
// Purpose: the records of a process: its counts (TOMBOLO_STATS) and its trace (TOMBOLO_SVP_TRACE),
// told at its end. Counts are kept always: a worker's are its own, and all others are of events
// that cost far more than a count.
//
//   families_created    that were synced, or left by an exception
//   families_inlined    of these, run by their creator at the sync
//   families_killed, families_broken, families_failed
//   tasks_stolen        families and parts of ranges, taken from another worker
//   tasks_delegated     handed to the workers of a place
//   reads_blocked       reads of channels that waited
//   stacks_parked       stacks parked for families which other workers ran
//   remote_creates, remote_bytes     families in other processes, and bytes of messages
//
// Invariants: VPR1 the records outlive all pools: they are made before the first one is.
//             VPR2 they hold no descriptor while the program runs: one that closes its own would
//                  get the number for a file of its own.
// Memory: the events of workers that have ended, 64 bytes each, 8 MiB at most for each worker.
// Thread safety: yes.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/counters/counters.h"
#include "runtime/records/trace_file.h"
#include "svp/records/family_trace.h"
#include "svp/records/own_count.h"

namespace tombolo::svp {

class ProcessRecords {
 public:
  // Made at the first call.
  static ProcessRecords& here();

  // Whether workers shall keep traces.
  bool traced() const { return traced_; }

  // Of a worker that has ended.
  void add(const WorkerCounts& counts);
  void add(std::unique_ptr<FamilyTrace> trace);

  runtime::Counter& killed() { return killed_; }
  runtime::Counter& broken() { return broken_; }
  runtime::Counter& failed() { return failed_; }
  // Families and reads of threads that are no workers.
  runtime::Counter& created() { return created_; }
  runtime::Counter& blocked() { return blocked_; }
  runtime::Counter& remote_creates() { return remote_creates_; }
  runtime::Counter& remote_bytes() { return remote_bytes_; }

  ~ProcessRecords();

 private:
  ProcessRecords();
  void begin_trace(const std::string& path);
  Status write_trace();

  runtime::Counter& created_;
  runtime::Counter& inlined_;
  runtime::Counter& killed_;
  runtime::Counter& broken_;
  runtime::Counter& failed_;
  runtime::Counter& stolen_;
  runtime::Counter& delegated_;
  runtime::Counter& blocked_;
  runtime::Counter& parked_;
  runtime::Counter& remote_creates_;
  runtime::Counter& remote_bytes_;
  bool traced_ = false;
  pid_t owner_ = 0;  // a fork of it has no trace
  std::mutex mutex_;
  runtime::TraceFile trace_;
  std::vector<std::unique_ptr<FamilyTrace>> ended_;  // in the order of their ends
};

}  // namespace tombolo::svp
