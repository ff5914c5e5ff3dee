// SPDX-License-Identifier: Apache-2.0
// Purpose: the ping-pong of 002 section 6.1.1: a family that gets an array of integers and
// returns it at once, created and synced right after.
// Thread safety: values.
#pragma once

#include "experiments/common/experiment.h"
#include "experiments/svp/distribution.h"

namespace tombolo::experiments {

Experiment svp_ping_pong();

// One run: the shortest of so many create-and-syncs of an array of so many bytes, after one that is
// not counted. The array comes back changed by `change`, which the creator checks.
struct PingPong {
  Scheme scheme = Scheme::direct;
  std::uint64_t bytes = 4;
  int times = 1;
  SharedMemory::Care care = {};
  bool change = false;
};
struct PingPongResult {
  simulator::Duration shortest;
  Activity meanwhile;  // of both cores, in the shortest
  std::uint64_t wrong_words = 0;
  simulator::RunResult run;
};
Status ping_pong(const Context& context, const PingPong& what, PingPongResult* result);

}  // namespace tombolo::experiments
