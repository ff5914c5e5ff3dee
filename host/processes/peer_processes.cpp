// SPDX-License-Identifier: Apache-2.0
#include "host/processes/peer_processes.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

namespace tombolo::host {
namespace {

// Each look at one reads a file of /proc.
constexpr std::size_t files_per_look = 64;
// Descriptors that are asked whether they still stand for a process.
constexpr std::size_t checks_per_look = 64;

bool is_descriptor_of_process(int descriptor) {
  return syscall(SYS_pidfd_send_signal, descriptor, 0, nullptr, 0) == 0 || errno != EBADF;
}

// A process's descriptor becomes readable when the process ends, even before it is reaped.
class Descriptors {
 public:
  // Open until this process ends; -1 if the kernel gives none, or the program needs the rest.
  // `gone`: there is no such process.
  int of(const ProcessName& process, bool& gone) {
    const std::lock_guard lock(mutex_);
    const std::pair key(process.pid, process.started);
    if (const auto known = descriptors_.find(key); known != descriptors_.end()) {
      pollfd ended{known->second, POLLIN, 0};
      if (poll(&ended, 1, 0) == 0 && is_descriptor_of_process(known->second)) return known->second;
      // Dead, or another process has the number by now. Watches may still hold this descriptor.
    }
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || opened_ >= limit.rlim_cur / 4) return -1;
    const auto opened = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
    if (opened < 0) {
      gone = errno == ESRCH;
      return -1;
    }
    gone = has_ended(process);
    if (gone || static_cast<rlim_t>(opened) >= limit.rlim_cur / 2) {
      close(opened);
      return -1;
    }
    ++opened_;
    descriptors_[key] = opened;
    return opened;
  }

 private:
  std::mutex mutex_;
  std::uint64_t opened_ = 0;
  std::map<std::pair<std::int32_t, std::uint64_t>, int> descriptors_;
};

Descriptors& descriptors() {
  static Descriptors& the_descriptors = *new Descriptors;  // never destroyed, as job()
  return the_descriptors;
}

}  // namespace

PeerProcesses::PeerProcesses(std::size_t self, std::vector<ProcessName> processes)
    : self_(self), processes_(std::move(processes)) {}

const std::vector<std::size_t>& PeerProcesses::ended() {
  if (!opened_) open();
  look_at_descriptors();
  look_at_others();
  return ended_;
}

void PeerProcesses::open() {
  opened_ = true;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (rank == self_ || processes_[rank].pid == 0) continue;
    bool gone = false;
    const int descriptor = descriptors().of(processes_[rank], gone);
    if (gone) {
      note(rank);
    } else if (descriptor < 0) {
      others_.push_back(rank);
    } else {
      polls_.push_back({descriptor, POLLIN, 0});
      polled_.push_back(rank);
    }
  }
}

void PeerProcesses::look_at_descriptors() {
  if (polls_.empty()) return;
  const int ready = poll(polls_.data(), polls_.size(), 0);
  // A program may close all descriptors that it does not know, and open others under their numbers,
  // which may be silent for ever: some are asked with each look.
  for (std::size_t i = 0; i < std::min(checks_per_look, polls_.size()); ++i) {
    turn_of_check_ = turn_of_check_ == 0 ? polls_.size() - 1 : turn_of_check_ - 1;
    turn_of_check_ = std::min(turn_of_check_, polls_.size() - 1);
    if (polls_[turn_of_check_].revents == 0 && !is_descriptor_of_process(polls_[turn_of_check_].fd))
      leave_to_others(turn_of_check_);
    if (polls_.empty()) return;
  }
  if (ready <= 0) return;
  for (std::size_t i = polls_.size(); i-- > 0;) {
    if (polls_[i].revents == 0) continue;
    if (!is_descriptor_of_process(polls_[i].fd)) {
      leave_to_others(i);
    } else if ((polls_[i].revents & POLLIN) != 0) {
      note(polled_[i]);
      forget_descriptor(i);
    }
  }
}

void PeerProcesses::leave_to_others(std::size_t i) {
  others_.push_back(polled_[i]);
  forget_descriptor(i);
}

void PeerProcesses::forget_descriptor(std::size_t i) {
  polls_.erase(polls_.begin() + static_cast<std::ptrdiff_t>(i));
  polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(i));
}

void PeerProcesses::look_at_others() {
  const auto ends = [this](std::size_t rank, bool ended) {
    if (ended) note(rank);
    return ended;
  };
  std::erase_if(others_,
                [&](std::size_t rank) { return ends(rank, number_is_free(processes_[rank])); });
  const std::size_t files = std::min(files_per_look, others_.size());
  for (std::size_t i = 0; i < files; ++i) {
    if (turn_ >= others_.size()) turn_ = 0;
    if (others_.empty()) return;
    const std::size_t rank = others_[turn_];
    if (ends(rank, has_ended(processes_[rank])))
      others_.erase(others_.begin() + static_cast<std::ptrdiff_t>(turn_));
    else
      ++turn_;
  }
}

void PeerProcesses::note(std::size_t rank) {
  ended_.insert(std::lower_bound(ended_.begin(), ended_.end(), rank), rank);
}

}  // namespace tombolo::host
