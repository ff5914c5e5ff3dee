// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of a barrier: no core leaves before all have arrived, and a core that has
// left sees the data that the others published before.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"

namespace tombolo::litmus {

template <class C, class Barrier>
class BarrierProgram final : public Program {
 public:
  BarrierProgram(machine::Home cores, std::uint64_t rounds) : cores_(cores), rounds_(rounds) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    Barrier::take(layout, cores_);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = rounds_ * line_bytes};
  }
  void begin() override { arrived_.assign(cores_, 0); }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    Barrier barrier(core, Barrier::take(layout, cores_));
    for (std::uint64_t round = 1; round <= rounds_; ++round) {
      // A line for each round: a core that is ahead does not disturb one that still reads.
      (void)core.write(place(core.self(), round), &round, sizeof round).ok();
      core.publish(place(core.self(), round), sizeof round);
      arrived_[core.self()] = round;
      if (const Status status = barrier.arrive_and_wait(); !status.ok()) run.fail(status.message());
      look_at_others(core, round, run);
    }
  }
  std::string outcome(const Memory&, Run&) override { return "all have left"; }

 private:
  static machine::DataPlace place(machine::Home home, std::uint64_t round) {
    return {home, (round - 1) * line_bytes};
  }

  void look_at_others(C& core, std::uint64_t round, Run& run) {
    for (machine::Home other = 0; other < cores_; ++other)
      if (arrived_[other] < round)
        run.fail(fmt::format("barrier: core {} has left round {}, core {} has not arrived",
                             core.self(), round, other));
    // One neighbour stands for all: data of more cores only makes more states.
    const machine::Home other = (core.self() + 1) % cores_;
    std::uint64_t seen = 0;
    core.refresh(place(other, round), sizeof seen);
    (void)core.read(place(other, round), &seen, sizeof seen).ok();
    if (seen != round)
      run.fail(fmt::format("lost or stale data: core {} sees {} of core {} in round {}",
                           core.self(), seen, other, round));
  }

  machine::Home cores_;
  std::uint64_t rounds_;
  std::vector<std::uint64_t> arrived_;
};

}  // namespace tombolo::litmus
