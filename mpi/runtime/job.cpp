// SPDX-License-Identifier: Apache-2.0
#include "mpi/runtime/job.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>

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

// Processes can name each other's descriptors and memory if they run under the same boot and see
// each other under the same numbers.
std::uint64_t identify_host() {
  std::string identity;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::getline(boot, identity);
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) == 0)
    identity += fmt::format("/{}:{}", space.st_dev, space.st_ino);
  return std::hash<std::string>{}(identity);
}

}  // namespace

Job::Job()
    : options_(read_environment()),
      processors_(count_processors()),
      host_identity_(identify_host()) {
  int level = 0;
  if (host().Query_thread(&level) == MPI_SUCCESS) threads_ = level == MPI_THREAD_MULTIPLE;
  if (host().Comm_rank(MPI_COMM_WORLD, &world_rank_) != MPI_SUCCESS) world_rank_ = 0;
  for (const auto& complaint : options_.complaints) report_once(complaint);
}

void Job::count_forwarded(const std::string& why) {
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

void Job::report_once(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (std::find(reported_.begin(), reported_.end(), text) != reported_.end()) return;
  reported_.push_back(text);
  if (world_rank_ == 0) std::fprintf(stderr, "tombolo: %s\n", text.c_str());
}

Job& job() {
  // Never destroyed: windows may outlive the destructors of a program's own static objects.
  static Job* const the_job = new Job;
  return *the_job;
}

PeerWatch::PeerWatch(int self, std::vector<std::int32_t> pids)
    : self_(self), pids_(std::move(pids)) {}

PeerWatch::~PeerWatch() {
  for (const int descriptor : descriptors_)
    if (descriptor >= 0) close(descriptor);
}

Status PeerWatch::idle() {
  int arrived = 0;
  host().Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &arrived, MPI_STATUS_IGNORE);
  constexpr auto interval = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (next_look_ == Clock::time_point{}) next_look_ = now + interval;
  if (now < next_look_) return {};
  next_look_ = now + interval;
  return look();
}

Status PeerWatch::look() {
  if (descriptors_.empty()) {
    descriptors_.assign(pids_.size(), -1);
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      if (static_cast<int>(rank) == self_) continue;
      const long descriptor = syscall(SYS_pidfd_open, pids_[rank], 0);
      if (descriptor < 0 && errno == ESRCH)
        return Status::process_failed(
            static_cast<int>(rank),
            fmt::format("rank {} of the window (process {}) has died", rank, pids_[rank]));
      descriptors_[rank] = static_cast<int>(descriptor);
    }
  }
  // A descriptor of a process becomes readable when the process ends, even before it is reaped.
  std::vector<pollfd> polls;
  for (const int descriptor : descriptors_) polls.push_back({descriptor, POLLIN, 0});
  if (poll(polls.data(), polls.size(), 0) <= 0) return {};
  for (std::size_t rank = 0; rank < polls.size(); ++rank)
    if ((polls[rank].revents & POLLIN) != 0)
      return Status::process_failed(
          static_cast<int>(rank),
          fmt::format("rank {} of the window (process {}) has died", rank, pids_[rank]));
  return {};
}

}  // namespace tombolo::mpi
