// SPDX-License-Identifier: Apache-2.0
// Purpose: the work of a process while it waits for the other processes of a job: it lets others
// make progress (a message that a peer needs before it can arrive), and looks now and then whether
// all peers live.
// Thread safety: yes, if the progress hook is.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "host/processes/peer_processes.h"
#include "machine/waiting.h"

namespace tombolo::runtime {

class PeerWatch final : public machine::IdleHook {
 public:
  // `processes` by rank; number 0 for those on other hosts, which are not looked after. `progress`
  // may be null, and outlives the watch. `of`: of the whole that they are parts of, for messages.
  PeerWatch(int self, std::vector<host::ProcessName> processes, machine::IdleHook* progress,
            std::string of = "the window");
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // The error of the progress hook, or process_failed, which ends the wait, once peers have died:
  // it names all of them, since one that gives up because of a dead one soon is dead as well.
  Status idle() override;

 private:
  using Clock = std::chrono::steady_clock;
  Status look();

  std::vector<std::int32_t> pids_;
  machine::IdleHook* progress_;
  std::string of_;
  std::mutex mutex_;
  host::PeerProcesses processes_;
  Clock::time_point next_look_{};
};

}  // namespace tombolo::runtime
