// SPDX-License-Identifier: Apache-2.0
// Purpose: whether the processes of one window live, told by descriptors of the kernel as far as a
// share of the program's allows, else by /proc and signal 0.
//
//   PeerProcesses peers(rank, {{pid, started}, ...});
//   for (const std::size_t rank : peers.ended()) ...
//
// Invariants: PP1 this process has one descriptor for each process that it looks after, whatever
//                 the number of windows, and in all at most a quarter of those it may have open.
//             PP2 a process that has another's number is not taken for it.
// Thread safety: an object is used by one thread at a time; distinct ones by any.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/processes/process.h"

namespace tombolo::host {

class PeerProcesses {
 public:
  // By rank; that of `self` is not looked after, nor are those on other hosts.
  PeerProcesses(std::size_t self, std::vector<ProcessName> processes);

  // The ranks whose processes have ended, in ascending order. Of the processes without a descriptor
  // those that have ended but were not reaped are looked for in turns, some with each call.
  const std::vector<std::size_t>& ended();

 private:
  void open();
  void look_at_descriptors();
  void leave_to_others(std::size_t i);  // of polls_
  void forget_descriptor(std::size_t i);
  void look_at_others();
  void note(std::size_t rank);

  std::size_t self_;
  std::vector<ProcessName> processes_;
  bool opened_ = false;
  std::vector<pollfd> polls_;        // of those with a descriptor, and
  std::vector<std::size_t> polled_;  // their ranks
  std::vector<std::size_t> others_;  // ranks
  std::size_t turn_ = 0;             // the next of others_
  std::size_t turn_of_check_ = 0;    // the last of polls_ that was asked
  std::vector<std::size_t> ended_;
};

}  // namespace tombolo::host
