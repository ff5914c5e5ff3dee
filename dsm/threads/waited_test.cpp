// SPDX-License-Identifier: Apache-2.0
// Purpose: waits are counted with their time, or not at all.
#include "dsm/threads/waited.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace tombolo::dsm {
namespace {

std::uint64_t count_of(const char* name) { return runtime::counters().counter(name).value(); }

TEST(Waited, CountsOnlyWhereItIsToldTo) {
  const std::uint64_t before = count_of("dsm_barriers");
  Waited waited(Observer{});
  EXPECT_TRUE(waited.at_barrier([] { return Status(); }).ok());
  EXPECT_EQ(count_of("dsm_barriers"), before);
}

TEST(Waited, CountsCallsAndTheirTimeByKind) {
  const auto pause = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return Status();
  };
  const std::uint64_t locks = count_of("dsm_lock_waits");
  const std::uint64_t lock_us = count_of("dsm_lock_wait_us");
  const std::uint64_t barriers = count_of("dsm_barriers");
  const std::uint64_t barrier_us = count_of("dsm_barrier_us");
  Waited waited({.timed = true});
  EXPECT_TRUE(waited.for_lock(pause).ok());
  EXPECT_EQ(count_of("dsm_lock_waits"), locks + 1);
  EXPECT_GE(count_of("dsm_lock_wait_us"), lock_us + 2000);
  EXPECT_EQ(count_of("dsm_barriers"), barriers);
  EXPECT_EQ(count_of("dsm_barrier_us"), barrier_us);
  EXPECT_TRUE(waited.at_barrier(pause).ok());
  EXPECT_TRUE(waited.at_barrier(pause).ok());
  EXPECT_EQ(count_of("dsm_barriers"), barriers + 2);
  EXPECT_GE(count_of("dsm_barrier_us"), barrier_us + 4000);
}

// A hundred waits of less than a microsecond each are some microseconds.
TEST(Waited, AddsShortWaitsUp) {
  const std::uint64_t before = count_of("dsm_lock_wait_us");
  Waited waited({.timed = true});
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < start + std::chrono::milliseconds(5))
    EXPECT_TRUE(waited.for_lock([] { return Status(); }).ok());
  EXPECT_GT(count_of("dsm_lock_wait_us"), before);
}

TEST(Waited, AddsEventsToATrace) {
  Trace trace;
  Waited waited({.trace = &trace});
  EXPECT_TRUE(waited.for_lock([] { return Status(); }).ok());
  EXPECT_TRUE(waited.at_barrier([] { return Status(); }).ok());
  EXPECT_EQ(trace.count(), 2U);
  const std::string lines = trace.lines(0, 0);
  EXPECT_LT(lines.find("lock wait"), lines.find("barrier"));
}

TEST(Waited, PassesErrorsOn) {
  Waited waited({.timed = true});
  EXPECT_EQ(waited.for_lock([] { return Status::io("lost"); }).message(), "lost");
}

}  // namespace
}  // namespace tombolo::dsm
