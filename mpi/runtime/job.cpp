// SPDX-License-Identifier: Apache-2.0
#include "mpi/runtime/job.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "mpi/host/host.h"

namespace tombolo::mpi {
namespace {

std::uint32_t count_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // The launcher may have bound this process to one processor; what counts is how many the host has
  // for all its processes.
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) return static_cast<std::uint32_t>(online);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return 1;
}

// By the variables of the launchers of MPICH and Open MPI, and of Slurm.
std::uint32_t count_processes() {
  for (const char* name :
       {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}) {
    const char* const value = std::getenv(name);
    const long count = value != nullptr ? std::strtol(value, nullptr, 10) : 0;
    if (count > 0 && count < 1'000'000) return static_cast<std::uint32_t>(count);
  }
  return 1;
}

}  // namespace

Job::Job()
    : options_(read_environment()),
      processors_(count_processors()),
      processes_here_(count_processes()),
      host_identity_(host::this_host().digest()) {
  // A program of sessions alone has no world, and a level for each session: the highest is assumed.
  int initialized = 0;
  has_world_ = host().Initialized(&initialized) == MPI_SUCCESS && initialized != 0;
  int level = 0;
  threads_ = true;
  if (has_world_ && host().Query_thread(&level) == MPI_SUCCESS) {
    threads_ = level == MPI_THREAD_MULTIPLE;
    one_thread_ = level == MPI_THREAD_SINGLE;
  }
  if (!has_world_ || host().Comm_rank(MPI_COMM_WORLD, &world_rank_) != MPI_SUCCESS) world_rank_ = 0;
  for (const auto& complaint : options_.complaints) report_once(complaint);
}

void Job::count_forwarded(const std::string& why, bool created) {
  if (created) forwarded_created_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  ++forwarded_[why];
}

void Job::print_stats() {
  if (!options_.stats) return;
  const std::lock_guard lock(mutex_);
  std::uint64_t forwarded = 0;
  std::string reasons;
  for (const auto& [why, n] : forwarded_) {
    forwarded += n;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", why, n);
  }
  const auto line = fmt::format(
      "tombolo: stats rank={} machine={} windows_served={} windows_forwarded={} reason={}\n",
      world_rank_, name(options_.machine), served_.load(), forwarded,
      reasons.empty() ? "none" : reasons);
  std::fputs(line.c_str(), stderr);
}

bool Job::is_new(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (std::find(reported_.begin(), reported_.end(), text) != reported_.end()) return false;
  reported_.push_back(text);
  return true;
}

void Job::report_once(const std::string& text) {
  if (is_new(text) && world_rank_ == 0) std::fprintf(stderr, "tombolo: %s\n", text.c_str());
}

void Job::report_own_once(const std::string& text) {
  if (is_new(text)) std::fprintf(stderr, "tombolo: rank %d: %s\n", world_rank_, text.c_str());
}

Job& job() {
  // Never destroyed: windows may outlive the destructors of a program's own static objects.
  static Job* const the_job = new Job;
  return *the_job;
}

PeerWatch::PeerWatch(int self, std::vector<host::ProcessName> processes)
    : pids_(processes.size()), processes_(static_cast<std::size_t>(self), processes) {
  std::transform(processes.begin(), processes.end(), pids_.begin(),
                 [](const host::ProcessName& process) { return process.pid; });
}

Status PeerWatch::idle() {
  int arrived = 0;
  if (job().has_world())  // without, there is no communicator at hand
    host().Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &arrived, MPI_STATUS_IGNORE);
  constexpr auto interval = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (next_look_ == Clock::time_point{}) next_look_ = now + interval;
  if (now < next_look_) return {};
  next_look_ = now + interval;
  return look();
}

// Names all that have ended: a process that gives up because of a dead one soon is dead as well.
Status PeerWatch::look() {
  const std::vector<std::size_t>& ended = processes_.ended();
  if (ended.empty()) return {};
  constexpr std::size_t most_named = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(most_named, ended.size()); ++i)
    names += fmt::format("{}rank {} (process {})", i == 0 ? "" : ", ", ended[i], pids_[ended[i]]);
  if (ended.size() > most_named) names += fmt::format(" and {} more", ended.size() - most_named);
  return Status::process_failed(
      static_cast<int>(ended.front()),
      fmt::format("{} of the window {} died", names, ended.size() == 1 ? "has" : "have"));
}

}  // namespace tombolo::mpi
