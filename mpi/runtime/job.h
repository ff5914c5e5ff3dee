// SPDX-License-Identifier: Apache-2.0
// Purpose: what one process knows about its job: options, the host it runs on, how many threads may
// call, what was served and what was forwarded. Also the duties of a process that waits: progress
// of the host MPI, and a look at whether its peers live. Invariants: J1 no MPI call is made before
// the first window is created, nor after MPI_Finalize. Thread safety: all members, after the first
// call of job().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/processes/host_identity.h"
#include "host/processes/peer_processes.h"
#include "machine/waiting.h"
#include "mpi/host/mpi_header.h"
#include "mpi/runtime/options.h"

namespace tombolo::mpi {

class Job {
 public:
  Job();

  const Options& options() const { return options_; }
  int world_rank() const { return world_rank_; }
  // MPI was initialized, so that there is MPI_COMM_WORLD.
  bool has_world() const { return has_world_; }
  // Several threads may call MPI at once.
  bool threads() const { return threads_; }
  // The program has promised that it has no other threads (MPI_THREAD_SINGLE).
  bool one_thread() const { return one_thread_; }
  std::uint32_t processors() const { return processors_; }
  // Processes of the job on this host, as far as the launcher says; else 1.
  std::uint32_t processes_here() const { return processes_here_; }
  // Equal for processes that can share memory: same boot of the same host, same view of processes.
  std::uint64_t host_identity() const { return host_identity_; }

  void count_served() { served_.fetch_add(1, std::memory_order_relaxed); }
  // A window that goes to the host MPI, and why; `created`: over memory of the program.
  void count_forwarded(const std::string& why, bool created);
  // There was such a window over memory of the program.
  bool forwarded_created() const { return forwarded_created_.load(std::memory_order_relaxed); }
  // TOMBOLO_STATS=1: one line on stderr.
  void print_stats();

  // One line on stderr from rank 0 of the world, at most once for each text.
  void report_once(const std::string& text);
  // The same from this process, for what concerns it alone.
  void report_own_once(const std::string& text);

 private:
  Options options_;
  int world_rank_ = 0;
  bool has_world_ = true;
  bool threads_ = false;
  bool one_thread_ = false;
  std::atomic<bool> forwarded_created_{false};
  std::uint32_t processors_ = 1;
  std::uint32_t processes_here_ = 1;
  std::uint64_t host_identity_ = 0;
  std::atomic<std::uint64_t> served_{0};
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> forwarded_;
  bool is_new(const std::string& text);
  std::vector<std::string> reported_;
};

// The job of this process; made at first use, inside an MPI call.
Job& job();

// What a process does while it waits for the peers of one window.
class PeerWatch final : public machine::IdleHook {
 public:
  // `processes` by rank in the window.
  PeerWatch(int self, std::vector<host::ProcessName> processes);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Lets the host MPI make progress: a peer may be unable to arrive before a message of ours does.
  // Now and then looks whether all peers live; a dead one ends the wait with process_failed.
  Status idle() override;

 private:
  using Clock = std::chrono::steady_clock;
  Status look();

  std::vector<std::int32_t> pids_;
  std::mutex mutex_;
  host::PeerProcesses processes_;
  Clock::time_point next_look_{};
};

}  // namespace tombolo::mpi
