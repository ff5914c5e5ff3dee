// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes of processes.h with the engine of one machine, for tests that look into it
// or have several windows. Each test that includes this compiles the engine for its machines anew.
// Thread safety: that of processes.h.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "machine/testing/ensemble.h"
#include "windows/testing/processes.h"
#include "windows/window.h"

namespace tombolo::windows::testing {

// A process of a window on the machine C.
template <class C>
class ProcessOn : public Process {
 public:
  using Machine = C;
  static inline World world;  // of the processes that are made next

  explicit ProcessOn(const machine::AttachmentOf<C>& at)
      : Process(at.self, at.cores),
        window_(world.mapped ? at : without_mapping(at), world.options) {}
  C& core() { return window_.core(); }
  Engine& window() override { return window_; }
  void pause() override { must(core().pause(10'000), "pause"); }
  void store_bytes(Home home, Offset at, const void* from, std::size_t bytes) override {
    if constexpr (!machine::HasNoViews<C>) return Process::store_bytes(home, at, from, bytes);
    must(core().write({home, at}, from, bytes), "write");
  }
  void load_bytes(Home home, Offset at, void* to, std::size_t bytes) override {
    if constexpr (!machine::HasNoViews<C>) return Process::load_bytes(home, at, to, bytes);
    must(core().read({home, at}, to, bytes), "read");
  }

 private:
  // Memory that only its own process has mapped; the others reach it through the kernel.
  static machine::AttachmentOf<C> without_mapping(machine::AttachmentOf<C> at) {
    for (machine::DataRegion& region : at.data) {
      region.foreign_address = reinterpret_cast<std::uint64_t>(region.memory);
      region.pid = getpid();
      region.memory = nullptr;
    }
    return at;
  }

  Window<C> window_;
};

template <class C>
machine::testing::EnsembleShape shape_of(const World& world, const Weather& weather,
                                         machine::IdleHook& watch) {
  ProcessOn<C>::world = world;
  return {.cores = world.processes,
          .sync_bytes = Window<C>::sync_bytes(world.processes),
          .data_bytes = world.bytes,
          .seed = weather.seed,
          .evictions = weather.evictions,
          .idle = &watch,
          .configuration = weather.configuration};
}

template <class C>
using Processes = machine::testing::Ensemble<ProcessOn<C>>;

template <class C>
void expect_nothing_lost(Processes<C>& processes) {
  if constexpr (tells_losses<C>) {
    for (Home self = 0; self < processes.cores(); ++self) {
      const auto& findings = processes.core(self).core().findings();
      EXPECT_TRUE(findings.clean()) << "process " << self << ": " << findings.report();
    }
  }
}

std::string describe(std::string_view machine, const World& world, const Weather& weather);

template <class C>
void run_once_with_own_engine(const World& world, const Weather& weather, const Program& program) {
  const std::string where = describe(C::properties.name, world, weather);
  SCOPED_TRACE(where);
  Watch watch(world.seconds);
  Processes<C> processes(shape_of<C>(world, weather, watch));
  processes.run([&](Process& process) { run_one(process, program, where, watch); });
  if (!world.may_lose) expect_nothing_lost<C>(processes);
}

}  // namespace tombolo::windows::testing
