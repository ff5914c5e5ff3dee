// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/peer_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tombolo::runtime {

PeerWatch::PeerWatch(int self, std::vector<host::ProcessName> processes,
                     machine::IdleHook* progress, std::string of)
    : pids_(processes.size()),
      progress_(progress),
      of_(std::move(of)),
      processes_(static_cast<std::size_t>(self), processes) {
  std::transform(processes.begin(), processes.end(), pids_.begin(),
                 [](const host::ProcessName& process) { return process.pid; });
}

Status PeerWatch::idle() {
  if (progress_ != nullptr) TOMBOLO_TRY(progress_->idle());
  constexpr auto interval = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (next_look_ == Clock::time_point{}) next_look_ = now + interval;
  if (now < next_look_) return {};
  next_look_ = now + interval;
  return look();
}

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
      fmt::format("{} of {} {} died", names, of_, ended.size() == 1 ? "has" : "have"));
}

}  // namespace tombolo::runtime
