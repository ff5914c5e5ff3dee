// SPDX-License-Identifier: Apache-2.0
// Purpose: threads, sleeps and memory of a simulated core under sccLinux.
#include "experiments/svp/linux.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using simulator::Address;
using simulator::CoreId;
using simulator::Duration;

class LinuxTest : public ::testing::Test {
 protected:
  // Runs a program on core 0 alone.
  template <class Program>
  void alone(std::uint32_t threads, Program&& program) {
    scc::Chip chip(context_.chip);
    Linux system(chip, CoreId(0), {.threads = threads});
    system.start([&] {
      program(system);
      system.stop(system.cpu());
    });
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
  Context context_ = test_context();
};

TEST_F(LinuxTest, ThreadsThatComputeRunOneAfterTheOther) {
  std::string order;
  Duration took;
  alone(2, [&](Linux& system) {
    const auto work = [&](char name) {
      return [&, name] {
        order += name;
        system.compute(Duration::milliseconds(1));
        order += name;
      };
    };
    const simulator::Time begin = system.now();
    system.spawn(work('a'));
    system.spawn(work('b'));
    system.join();
    took = system.now() - begin;
  });
  EXPECT_EQ(order, "abba");  // a new thread begins at once
  EXPECT_GE(took, Duration::milliseconds(2));
}

TEST_F(LinuxTest, AThreadThatSleptComesBeforeOneThatComputes) {
  std::string order;
  alone(1, [&](Linux& system) {
    system.spawn([&] {
      for (int i = 0; i < 3; ++i) {
        system.sleep();
        order += 's';
      }
    });
    system.sleep();
    order += 'c';
    system.compute(Duration::milliseconds(10));
    order += 'c';
    system.join();
  });
  EXPECT_EQ(order.back(), 'c');
  EXPECT_EQ(std::count(order.begin(), order.end(), 's'), 3);
}

TEST_F(LinuxTest, IsIdleWhileNoThreadCanRun) {
  alone(1, [&](Linux& system) {
    const Duration before = system.idle(system.now());
    const simulator::Time begin = system.now();
    system.sleep();
    const Duration slept = system.now() - begin;
    const Duration idle = system.idle(system.now()) - before;
    EXPECT_GT(idle, Duration());
    EXPECT_LT(idle, slept);  // the call and the switch are work
    EXPECT_GT(idle + Duration::microseconds(100), slept);
    system.compute(Duration::milliseconds(3));
    EXPECT_EQ(system.idle(system.now()) - before, idle);
    // A thread that computes while another one sleeps leaves no idle time.
    system.spawn([&] { system.compute(Duration::milliseconds(3)); });
    const Duration spawned = system.idle(system.now());
    system.sleep();
    EXPECT_EQ(system.idle(system.now()), spawned);
    system.join();
  });
}

// Another core asks in the midst of the interval.
TEST_F(LinuxTest, IsIdleUpToTheMomentThatIsAskedFor) {
  scc::Chip chip(context_.chip);
  Linux idle(chip, CoreId(0), {});
  Linux asks(chip, CoreId(2), {});
  idle.start([] {});  // it waits for the end of the machine
  asks.start([&] {
    asks.compute(Duration::milliseconds(2));
    asks.cpu().fibre().await_turn();
    const simulator::Time earlier = asks.now();
    const Duration first = idle.idle(earlier);
    EXPECT_GT(first, Duration::milliseconds(1));
    asks.compute(Duration::milliseconds(2));
    asks.cpu().fibre().await_turn();
    EXPECT_EQ(idle.idle(asks.now()) - first, asks.now() - earlier);
    idle.stop(asks.cpu());
    asks.stop(asks.cpu());
  });
  const simulator::RunResult result = chip.run();
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST_F(LinuxTest, ASleepEndsWithATick) {
  alone(0, [&](Linux& system) {
    const auto tick = Duration::microseconds(system.times().tick_microseconds);
    system.sleep();
    const simulator::Time first = system.now();
    system.sleep();
    EXPECT_EQ(system.now() - first, tick);
  });
}

TEST_F(LinuxTest, AThreadWaitsForWhatAnotherDoes) {
  bool done = false;
  alone(1, [&](Linux& system) {
    system.spawn([&] {
      system.compute(Duration::milliseconds(3));
      done = true;
    });
    system.wait([&] { return done; });
    EXPECT_GE(system.now().since_start(), Duration::milliseconds(3));
  });
  EXPECT_TRUE(done);
}

// Its pages are the kernel's again after free(), and new ones are zero.
TEST_F(LinuxTest, LargeBlocksAreZero) {
  alone(0, [&](Linux& system) {
    Address at;
    ASSERT_TRUE(system.allocate(1 << 20, &at).ok());
    system.cpu().store<std::uint32_t>({at + 4096}, 7);
    system.free(at);
    ASSERT_TRUE(system.allocate(1 << 20, &at).ok());
    EXPECT_EQ(system.cpu().load<std::uint32_t>({at + 4096}), 0u);
  });
}

TEST_F(LinuxTest, MemoryEndsWithTheImages) {
  alone(0, [&](Linux& system) {
    const auto bytes = static_cast<std::uint64_t>(system.times().private_megabytes -
                                                  system.times().kernel_megabytes)
                       << 20;
    EXPECT_EQ(system.heap().bytes_free(), bytes);
    Address at;
    const Status status = system.allocate(bytes + 1, &at);
    EXPECT_EQ(status.code(), Code::no_memory);
    EXPECT_NE(status.message().find(std::to_string(bytes)), std::string::npos);
  });
}

TEST(Heap, FirstFitGivesBackWhatItHas) {
  Heap heap;
  heap.add(Address(1024), 1024);
  Address a;
  Address b;
  Address c;
  ASSERT_TRUE(heap.allocate(100, &a).ok());
  ASSERT_TRUE(heap.allocate(100, &b).ok());
  EXPECT_EQ(a, Address(1024));
  EXPECT_EQ(b, Address(1024 + 128));
  heap.free(a);
  ASSERT_TRUE(heap.allocate(40, &c).ok());
  EXPECT_EQ(c, a);
  ASSERT_TRUE(heap.allocate(64, &a, Heap::From::above).ok());
  EXPECT_EQ(a, Address(2048 - 64));
  heap.free(a);
  heap.free(b);
  heap.free(c);
  EXPECT_EQ(heap.bytes_free(), 1024u);
  ASSERT_TRUE(heap.allocate(1024, &a).ok());
  EXPECT_EQ(heap.allocate(1, &b).code(), Code::no_memory);
}

}  // namespace
}  // namespace tombolo::experiments
