// SPDX-License-Identifier: Apache-2.0
// Purpose: each interrupt of another process is counted, and comes to it.
// Thread safety: -
#include "dsm/memory/process_interrupter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace tombolo::dsm {
namespace {

class Served final : public host::InterruptGate {
 public:
  int times = 0;

 private:
  void serve(std::uint64_t) override { ++times; }
};

TEST(ProcessInterrupter, InterruptsAThreadByItsNumber) {
  const runtime::Counter& interrupts = runtime::counters().counter("dsm_interrupts");
  const std::uint64_t before = interrupts.value();
  // Thread 0 is on another host.
  const std::array<host::ProcessName, 2> processes{host::ProcessName{},
                                                   host::process_named(getpid())};
  Served gate;
  ASSERT_TRUE(host::catch_interrupts(gate).ok());
  ProcessInterrupter interrupter(processes);
  interrupter.interrupt(1);
  EXPECT_EQ(gate.times, 1);
  interrupter.interrupt(0);
  EXPECT_EQ(gate.times, 1);
  EXPECT_EQ(interrupts.value(), before + 2);
  host::leave_interrupts();
}

}  // namespace
}  // namespace tombolo::dsm
