// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of post, start, complete and wait: an origin reaches a target only in the
// epoch that it means, the target sees all that was written to it, and no core waits for ever.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <span>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"

namespace tombolo::litmus {

// The members of one epoch, by core.
struct Epoch {
  std::vector<std::vector<machine::Home>> targets_of;
  std::vector<std::vector<machine::Home>> origins_of;
};

// One without members.
inline Epoch epoch_among(machine::Home cores) {
  return {.targets_of = std::vector<std::vector<machine::Home>>(cores),
          .origins_of = std::vector<std::vector<machine::Home>>(cores)};
}
inline Epoch& with(Epoch& epoch, machine::Home origin, machine::Home target) {
  epoch.targets_of[origin].push_back(target);
  epoch.origins_of[target].push_back(origin);
  return epoch;
}

// Protocol: Layout take(layout, cores); Protocol(core, layout); post(origins); start(targets);
// before_access(target); complete(targets); wait().
template <class C, class Protocol>
class EpochProgram final : public Program {
 public:
  using Home = machine::Home;
  EpochProgram(Home cores, std::vector<Epoch> epochs) : cores_(cores), epochs_(std::move(epochs)) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    Protocol::take(layout, cores_);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override { open_.assign(cores_, 0); }
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    Protocol protocol(core, Protocol::take(layout, cores_));
    for (std::uint64_t number = 1; number <= epochs_.size(); ++number)
      take_part(core, protocol, number, run);
  }
  std::string outcome(const Memory&, Run&) override { return "all epochs have ended"; }

 private:
  // Neighbours in a line: only write_through leaves the other origins' marks alone.
  static machine::DataPlace mark(Home target, Home origin) { return {target, origin * 8u}; }

  void take_part(C& core, Protocol& protocol, std::uint64_t number, Run& run) {
    const Home self = core.self();
    const std::vector<Home>& origins = epochs_[number - 1].origins_of[self];
    const std::vector<Home>& targets = epochs_[number - 1].targets_of[self];
    if (!origins.empty()) {
      open_[self] = number;
      protocol.post(origins);
    }
    if (!targets.empty()) {
      check(protocol.start(targets), run);
      access(core, protocol, targets, number, run);
      core.drain();
      check(protocol.complete(targets), run);
    }
    if (origins.empty()) return;
    check(protocol.wait(), run);
    open_[self] = 0;
    look_at_marks(core, origins, number, run);
  }

  void access(C& core, Protocol& protocol, const std::vector<Home>& targets, std::uint64_t number,
              Run& run) {
    for (const Home target : targets) {
      check(protocol.before_access(target), run);
      if (open_[target] != number)
        run.fail(fmt::format("epoch: origin {} reaches target {} outside its epoch {}", core.self(),
                             target, number));
      (void)core.write_through(mark(target, core.self()), &number, sizeof number).ok();
    }
  }

  void look_at_marks(C& core, const std::vector<Home>& origins, std::uint64_t number, Run& run) {
    for (const Home origin : origins) {
      std::uint64_t seen = 0;
      core.refresh(mark(core.self(), origin), sizeof seen);
      (void)core.read(mark(core.self(), origin), &seen, sizeof seen).ok();
      if (seen != number)
        run.fail(fmt::format("lost or stale data: target {} sees {} of origin {} in epoch {}",
                             core.self(), seen, origin, number));
    }
  }

  static void check(const Status& status, Run& run) {
    if (!status.ok()) run.fail(status.message());
  }

  Home cores_;
  std::vector<Epoch> epochs_;
  std::vector<std::uint64_t> open_;  // by target: its open exposure epoch
};

}  // namespace tombolo::litmus
