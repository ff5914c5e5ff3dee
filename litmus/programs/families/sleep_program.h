// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantee of svp/scheduler/sleep_handshake.h: a worker that waits for tasks of
// others, and sleeps while there is nothing to do, goes on when all are done. Core 0 waits, each
// other core ends a task of it.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/scheduler/handover.h"
#include "svp/scheduler/sleep_handshake.h"

namespace tombolo::litmus {

// The machine as core 0 has it, and as the others do.
template <class Sleeper, class Waker = Sleeper>
class SleepProgram final : public Program {
 public:
  explicit SleepProgram(machine::Home cores) : cores_(cores) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(Sleeper::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    if (at.self == 0) {
      Sleeper core(at);
      await_all(core, run);
    } else {
      Waker core(at);
      end_task(core);
    }
  }
  std::string outcome(const Memory&, Run&) override { return "all tasks are synced"; }

 private:
  struct Places {
    machine::Offset asleep;
    machine::Offset signal;
    machine::Offset states;
  };
  static Places take(machine::SyncLayout& layout) {
    return {.asleep = layout.take_lines(1),
            .signal = layout.take_lines(1),
            .states = layout.take_lines(8)};
  }
  Places places() const {
    machine::SyncLayout layout(Sleeper::reserved_sync_bytes(cores_));
    return take(layout);
  }
  // Of the task that core `by` ends.
  static machine::SyncPlace state(const Places& at, machine::Home by) {
    return {0, at.states + by * sizeof(std::uint64_t)};
  }

  void await_all(Sleeper& core, Run& run) {
    const Places at = places();
    const auto asleep = core.word({0, at.asleep});
    const auto signal = core.word({0, at.signal});
    for (machine::Home by = 1; by < core.cores(); ++by) {
      const auto done = [&] {
        return svp::Handover<Sleeper>::done(core, core.word(state(at, by)));
      };
      while (!done()) {
        const std::uint64_t seen = core.load(signal);
        svp::SleepHandshake<Sleeper>::announce(core, asleep);
        if (!done()) {
          const Status status =
              core.wait_until(signal, [seen](std::uint64_t now) { return now != seen; });
          if (!status.ok()) run.fail(status.message());
        }
        svp::SleepHandshake<Sleeper>::end(core, asleep);
      }
    }
  }
  void end_task(Waker& core) {
    const Places at = places();
    svp::Handover<Waker>::finish(core, core.word(state(at, core.self())));
    if (!svp::SleepHandshake<Waker>::must_wake(core, core.word({0, at.asleep}))) return;
    core.fetch_add(core.word({0, at.signal}), 1);
    core.notify(0);
  }

  machine::Home cores_;
};

}  // namespace tombolo::litmus
