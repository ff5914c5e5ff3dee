// SPDX-License-Identifier: Apache-2.0
// Purpose: one validator for all barriers on all machines: no core leaves before all have arrived,
// seen through counters and through data; errors; memory. Thread safety: -
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "sync/barriers/butterfly_barrier.h"
#include "sync/barriers/centralized_barrier.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/testing/cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using std::chrono::seconds;
using testing::Deadline;
using testing::Obituary;
using testing::Record;

template <class M>
struct Dissemination {
  using Machine = M;
  using Barrier = DisseminationBarrier<M>;
  static constexpr const char* name = "dissemination";
};
template <class M>
struct Butterfly {
  using Machine = M;
  using Barrier = ButterflyBarrier<M>;
  static constexpr const char* name = "butterfly";
};
template <class M>
struct Centralized {
  using Machine = M;
  using Barrier = CentralizedBarrier<M>;
  static constexpr const char* name = "centralized";
};

template <class Case>
class Barriers : public ::testing::Test {
 protected:
  using Machine = typename Case::Machine;
  using Barrier = typename Case::Barrier;

  // Calls body(core, barrier) for each of `cores` cores.
  template <class Body>
  void run(Home cores, machine::IdleHook& idle, Body&& body) {
    testing::run_each<Barrier, Machine>(
        {.cores = cores, .data_bytes = Record<Machine>::bytes, .seed = cores, .idle = &idle}, body);
  }

  void separates(Home cores, int rounds) {
    Deadline deadline(seconds(60));
    std::atomic<std::uint64_t> arrived{0};
    run(cores, deadline, [&](Machine& core, Barrier& barrier) {
      Random random = Random::stream(1, core.self());
      for (int round = 1; round <= rounds && !::testing::Test::HasFailure(); ++round) {
        if (random.one_in(16)) {
          ASSERT_TRUE(core.pause(random.below(20000)).ok());
        }
        ++arrived;
        ASSERT_TRUE(barrier.arrive_and_wait().ok());
        // No core can be more than one barrier ahead.
        const std::uint64_t now = arrived;
        EXPECT_GE(now, std::uint64_t{cores} * round);
        EXPECT_LT(now, std::uint64_t{cores} * (round + 1));
      }
    });
  }
};

using Cases = testing::Product<testing::AnyMachines, Dissemination, Butterfly, Centralized>;
TYPED_TEST_SUITE(Barriers, Cases, testing::CaseNames);

// Tests that need cores to be threads.
template <class Case>
class ThreadedBarriers : public Barriers<Case> {};
using ThreadedCases = testing::Product<AllMachines, Dissemination, Butterfly, Centralized>;
TYPED_TEST_SUITE(ThreadedBarriers, ThreadedCases, testing::CaseNames);

template <class Case>
constexpr int rounds = testing::scaled<typename Case::Machine>(2000);

TYPED_TEST(Barriers, SeparateRounds) {
  this->separates(1, 3);
  this->separates(2, rounds<TypeParam>);
  for (const Home cores : {3, 4, 5, 7}) this->separates(cores, rounds<TypeParam> / 10);
  this->separates(17, rounds<TypeParam> / 80);
  this->separates(33, 2);
}

// Data that a core published or drained before a barrier is seen after it by every core that
// refreshes.
TYPED_TEST(Barriers, CarryData) {
  using C = typename TestFixture::Machine;
  Deadline deadline(seconds(60));
  constexpr Home cores = 5;
  this->run(cores, deadline, [&](C& core, typename TestFixture::Barrier& barrier) {
    Random random = Random::stream(2, core.self());
    for (int round = 1; round <= rounds<TypeParam> / 20; ++round) {
      // Each writes the data of another home, which changes from round to round.
      const Home home = (core.self() + round) % cores;
      Record<C>(core, home).write(round * 100 + core.self(), random.one_in(2));
      ASSERT_TRUE(barrier.arrive_and_wait().ok());
      for (Home h = 0; h < cores; ++h) {
        const std::uint64_t writer = (h + cores - round % cores) % cores;
        ASSERT_EQ(Record<C>(core, h).read(), round * 100 + writer);
      }
      ASSERT_TRUE(barrier.arrive_and_wait().ok());
    }
  });
}

TYPED_TEST(ThreadedBarriers, FaultOfTheHookEndsTheWait) {
  using C = typename TestFixture::Machine;
  Obituary obituary(seconds(60));
  std::atomic<int> left{0};
  this->run(4, obituary, [&](C& core, typename TestFixture::Barrier& barrier) {
    ASSERT_TRUE(barrier.arrive_and_wait().ok());
    ++left;
    if (core.self() == 2) {
      while (left < 4) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      obituary.announce(2);
      return;
    }
    const Status s = barrier.arrive_and_wait();
    EXPECT_EQ(s.code(), Code::process_failed);
    EXPECT_EQ(s.rank(), 2);
  });
}

TYPED_TEST(Barriers, MemoryPerCoreIsLogarithmic) {
  const auto bytes = [](Home cores) {
    machine::SyncLayout layout(0);
    TestFixture::Barrier::take(layout, cores);
    return layout.bytes();
  };
  EXPECT_LE(bytes(2), 128u);
  EXPECT_LE(bytes(1024), 640u);
}

}  // namespace
}  // namespace tombolo::sync
