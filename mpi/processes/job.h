// SPDX-License-Identifier: Apache-2.0
// Purpose: the facts of one process about its MPI job: options, how many threads may call, windows
// served and forwarded.
// Invariants: JO1 no MPI call is made before the program asks for a window or for memory, nor after
//                 MPI_Finalize.
// Thread safety: all members, after the first call of job().
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "host/mpi/mpi_header.h"
#include "machine/place.h"
#include "runtime/collective/shared_memory.h"
#include "runtime/counters/counters.h"
#include "runtime/options/options.h"
#include "runtime/reports/reports.h"

namespace tombolo::mpi {

class Job {
 public:
  Job();

  const runtime::Options& options() const { return options_; }
  int world_rank() const { return world_rank_; }
  // MPI was initialized, so that there is MPI_COMM_WORLD.
  bool has_world() const { return has_world_; }
  // Several threads may call MPI at once.
  bool threads() const { return threads_; }
  // Several threads may, one call at a time (MPI_THREAD_SERIALIZED).
  bool threads_in_turn() const { return threads_in_turn_; }
  // The program has promised that it has no other threads (MPI_THREAD_SINGLE).
  bool one_thread() const { return one_thread_; }
  // How to wait for `cores` processes of one window: it does not make the host a quiet one.
  machine::WaitPolicy waiting(machine::Home cores) const;
  // From the members of a window: how many processors the job has on this host, if all its
  // processes here are among them, or more than before where their number is not known.
  void learn_processors(std::span<const runtime::Member> members, std::uint64_t host);
  runtime::Reports& reports() { return reports_; }

  void count_served() { served_.add(); }
  // One that got parts of an earlier window (team.h).
  void count_reused() { reused_.add(); }
  // A window that goes to the host MPI, and why; `created`: over memory of the program.
  void count_forwarded(const std::string& why, bool created);
  // Of a program without windows, which no setting concerns: one with windows was ended at its
  // first.
  void report_complaints();
  // TOMBOLO_STATS: one line on stderr.
  void print_stats();

 private:
  runtime::Options options_;
  int world_rank_ = 0;
  bool has_world_ = true;
  bool threads_ = false;
  bool threads_in_turn_ = false;
  bool one_thread_ = false;
  runtime::Reports reports_;
  runtime::Counter& served_;
  runtime::Counter& reused_;
  std::atomic<std::uint32_t> processors_;
  std::mutex learning_;
  std::uint32_t learned_from_ = 0;  // so many processes
};

// The job of this process; made at first use, inside an MPI call.
Job& job();

}  // namespace tombolo::mpi
