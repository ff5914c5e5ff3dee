// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantee of kill with the alarm of svp/: a thread that blocks while its family is
// stopped ends. Core 0 stops the family, the others have a thread in it, which blocks for ever but
// for that.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/scheduler/alarm.h"

namespace tombolo::litmus {

// The order of the steps: as it has to be, and the ways to get it wrong.
enum class AlarmOrder : std::uint8_t { right, raised_before_marked, not_looked_after_listing };

template <class C>
class AlarmProgram final : public Program {
 public:
  AlarmProgram(machine::Home cores, AlarmOrder order) : cores_(cores), order_(order) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    const Places places = take(layout);
    svp::Alarm<C> alarm(core, places.alarm);
    if (at.self == 0)
      stop_family(core, alarm, places, run);
    else
      block(core, alarm, places, run);
  }
  std::string outcome(const Memory& memory, Run& run) override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    const Places places = take(layout);
    if (memory.load(memory.word_index({0, places.alarm.active})) != 0)
      run.fail("alarm: still active after it was retired");
    return "all threads have ended";
  }

 private:
  struct Places {
    machine::Offset attention;
    typename svp::Alarm<C>::Layout alarm;
    machine::Offset mark;
    machine::Offset ended;
  };
  static Places take(machine::SyncLayout& layout) {
    const machine::Offset attention = layout.take_lines(1);
    return {.attention = attention,
            .alarm = svp::Alarm<C>::take(layout, attention),
            .mark = layout.take_lines(1),
            .ended = layout.take_lines(1)};
  }

  void stop_family(C& core, svp::Alarm<C>& alarm, const Places& places, Run& run) {
    const auto mark = core.word({0, places.mark});
    if (order_ == AlarmOrder::raised_before_marked) {
      alarm.raise();
      core.compare_exchange(mark, 0, 1);
    } else {
      core.compare_exchange(mark, 0, 1);
      alarm.raise();
    }
    const std::uint64_t others = core.cores() - 1;
    const Status status = core.wait_until(core.word({0, places.ended}),
                                          [others](std::uint64_t v) { return v == others; });
    if (!status.ok()) run.fail(status.message());
    alarm.retire();
  }
  void block(C& core, svp::Alarm<C>& alarm, const Places& places, Run& run) {
    const auto mark = core.word({0, places.mark});
    const auto stopped = [&] { return core.load(mark) != 0; };
    // The thread runs, and looks when its core is told to: it may be stopped at once.
    if (core.load(core.word({core.self(), places.attention})) != 0) (void)alarm.heard();
    // It is listed as blocked from here on. AL2.
    if (order_ == AlarmOrder::not_looked_after_listing || !(alarm.active() && stopped())) {
      do {
        if (const Status status = alarm.await(); !status.ok()) run.fail(status.message());
        (void)alarm.heard();
      } while (!stopped());
    }
    core.fetch_add(core.word({0, places.ended}), 1);
    core.notify(0);
  }

  machine::Home cores_;
  AlarmOrder order_;
};

}  // namespace tombolo::litmus
