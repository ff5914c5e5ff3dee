// SPDX-License-Identifier: Apache-2.0
// Purpose: system calls about things of the program, not of this process, where that is one of
// several on any hosts (launched_servers.h): the end of the program, signals to its number, and in
// all but the first process its descriptors and paths.
//
// Invariants: LNC1 a call about a descriptor or a path is made in the first process, or refused by
//                  name: never on a file of this process's.
// Thread safety: the program's thread of the process.
#pragma once

#include "host/faults/caught_calls.h"
#include "pthreads/hosts/launched_servers.h"

namespace tombolo::dsm {

class LaunchedCalls final : public host::CallTarget {
 public:
  using Facts = LaunchedTeam::Facts;
  LaunchedCalls(LaunchedServers& team, const Facts& facts) : team_(team), facts_(facts) {}

  bool before(host::SystemCall& call) override;

 private:
  void forward(host::SystemCall& call, bool composed);
  void map_file(host::SystemCall& call);
  void refuse(host::SystemCall& call) const;

  LaunchedServers& team_;
  Facts facts_;
};

}  // namespace tombolo::dsm
