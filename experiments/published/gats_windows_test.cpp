// SPDX-License-Identifier: Apache-2.0
// Several windows over the same memory: their epochs do not know of each other, and the puts of
// each are there when its wait returns, whichever ends first.
#include "experiments/published/gats_windows.h"

#include <gtest/gtest.h>

#include "backends/scc/job.h"
#include "base/random.h"
#include "experiments/published/match_list_gats.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments::published {
namespace {

using machine::Home;
using simulator::Duration;

template <template <class> class Gats>
using Two = GatsWindows<SpinningCore, Gats, 2>;

// Runs program(windows, core of the process, its number) in so many processes.
template <class Windows, class Program>
void run(Home processes, std::uint64_t seed, const Program& program) {
  scc::Parameters chip;
  ASSERT_TRUE(scc::find_parameters("scc", &chip).ok());
  scc::JobShape shape;
  shape.processes = processes;
  shape.sync_bytes = Windows::sync_bytes(processes);
  shape.data_bytes = 64;
  shape.options.seed = seed;
  shape.options.time_limit = simulator::Time::after_start(Duration::milliseconds(100));
  scc::Job job(chip, shape);
  const simulator::RunResult result = job.run([&](const scc::Attachment& at, scc::Cpu& cpu) {
    Windows windows(at);
    program(windows, cpu, at.self);
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

class GatsWindowsOf : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  // A ring, in which each process puts a number to the neighbour above through one window and to
  // the one below through the other, and ends the epochs in random order.
  template <template <class> class Gats>
  void ring() {
    constexpr Home process_count = 7;
    constexpr std::uint64_t epochs = 25;
    int seen = 0;
    run<Two<Gats>>(process_count, GetParam(), [&](auto& windows, scc::Cpu& cpu, Home self) {
      const Home above = (self + process_count - 1) % process_count;
      const Home below = (self + 1) % process_count;
      const Home both[] = {above, below};
      Random random = Random::stream(GetParam(), self);
      for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].post(both).ok());
        for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].start(both).ok());
        const std::uint64_t up = epoch * 100 + self;
        const std::uint64_t down = epoch * 100 + 50 + self;
        ASSERT_TRUE(windows[0].put(above, 8, &up, sizeof up).ok());
        ASSERT_TRUE(windows[1].put(below, 0, &down, sizeof down).ok());
        cpu.compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(4000))));
        const std::size_t first = random.below(2);
        ASSERT_TRUE(windows[first].complete().ok());
        cpu.compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(4000))));
        ASSERT_TRUE(windows[1 - first].complete().ok());
        const std::size_t waited = random.below(2);
        for (const std::size_t n : {waited, 1 - waited}) {
          ASSERT_TRUE(windows[n].wait().ok());
          std::uint64_t came = 0;
          ASSERT_TRUE(windows.core().read({self, n == 0 ? 8u : 0u}, &came, sizeof came).ok());
          EXPECT_EQ(came, n == 0 ? epoch * 100 + below : epoch * 100 + 50 + above);
          ++seen;
        }
      }
    });
    EXPECT_EQ(seen, int{process_count} * int{epochs} * 2);
  }
};

TEST_P(GatsWindowsOf, BringThePutsOfEachEpoch) {
  ring<MatchVectorGats>();
  ring<MatchListGats>();
}

INSTANTIATE_TEST_SUITE_P(Seeds, GatsWindowsOf, ::testing::Values(1, 2, 3));

// The origin's put through the window that is open does not wait for the post of the other.
TEST(GatsWindows, APostOfOneOpensThatOneAlone) {
  const auto pause = Duration::microseconds(300);
  run<Two<MatchVectorGats>>(2, 1, [&](auto& windows, scc::Cpu& cpu, Home self) {
    const Home peer[] = {1 - self};
    const std::uint64_t number = 7;
    if (self == 0) {
      for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].start(peer).ok());
      ASSERT_TRUE(windows[1].put(1, 0, &number, sizeof number).ok());
      EXPECT_LT(cpu.now().since_start(), pause);
      ASSERT_TRUE(windows[0].put(1, 8, &number, sizeof number).ok());
      EXPECT_GE(cpu.now().since_start(), pause);
      for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].complete().ok());
    } else {
      ASSERT_TRUE(windows[1].post(peer).ok());
      cpu.compute(pause);
      ASSERT_TRUE(windows[0].post(peer).ok());
      for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].wait().ok());
    }
  });
}

// A target whose first epoch has ended sees its puts, while the origin is still in the second.
TEST(GatsWindows, AnEpochThatEndsFirstHasItsPutsInMemory) {
  const auto pause = Duration::microseconds(300);
  run<Two<MatchVectorGats>>(2, 1, [&](auto& windows, scc::Cpu& cpu, Home self) {
    const Home peer[] = {1 - self};
    const std::uint64_t number = 7;
    if (self == 0) {
      for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].start(peer).ok());
      ASSERT_TRUE(windows[0].put(1, 0, &number, sizeof number).ok());
      ASSERT_TRUE(windows[0].complete().ok());
      cpu.compute(pause);
      ASSERT_TRUE(windows[1].put(1, 8, &number, sizeof number).ok());
      ASSERT_TRUE(windows[1].complete().ok());
    } else {
      for (std::size_t n : {0, 1}) ASSERT_TRUE(windows[n].post(peer).ok());
      std::uint64_t came = 0;
      ASSERT_TRUE(windows[0].wait().ok());
      EXPECT_LT(cpu.now().since_start(), pause);
      ASSERT_TRUE(windows.core().read({1, 0}, &came, sizeof came).ok());
      EXPECT_EQ(came, number);
      ASSERT_TRUE(windows[1].wait().ok());
      EXPECT_GE(cpu.now().since_start(), pause);
      ASSERT_TRUE(windows.core().read({1, 8}, &came, sizeof came).ok());
      EXPECT_EQ(came, number);
    }
  });
}

// Outside of all epochs a put is the mistake that it is with one window.
TEST(GatsWindows, APutAfterTheLastEpochIsRefused) {
  run<Two<MatchVectorGats>>(2, 1, [&](auto& windows, scc::Cpu&, Home self) {
    const Home peer[] = {1 - self};
    const std::uint64_t number = 7;
    if (self == 1) {
      ASSERT_TRUE(windows[0].post(peer).ok());
      ASSERT_TRUE(windows[0].wait().ok());
      ASSERT_TRUE(windows[0].post(peer).ok());
      return;
    }
    ASSERT_TRUE(windows[0].start(peer).ok());
    ASSERT_TRUE(windows[0].put(1, 0, &number, sizeof number).ok());
    ASSERT_TRUE(windows[0].complete().ok());
    EXPECT_EQ(windows[0].put(1, 0, &number, sizeof number).code(), Code::epoch);
  });
}

TEST(GatsWindows, NeedSyncMemoryForEach) {
  using One = GatsWindows<SpinningCore, MatchVectorGats, 1>;
  const std::size_t one = One::sync_bytes(48);
  const std::size_t two = Two<MatchVectorGats>::sync_bytes(48);
  const std::size_t window = windows::Window<SpinningCore>::sync_bytes(48);
  EXPECT_GT(one, window);
  EXPECT_EQ(two - window, 2 * (one - window));
}

}  // namespace
}  // namespace tombolo::experiments::published
