// SPDX-License-Identifier: Apache-2.0
// Purpose: one validator for all mutexes on all machines: exclusion seen through protected data and
// through a counter, no deadlock, errors.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "sync/locks/bakery_lock.h"
#include "sync/locks/mcs_lock.h"
#include "sync/locks/mutex.h"
#include "sync/locks/sleeping_mutex.h"
#include "sync/testing/cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using machine::testing::Ensemble;
using std::chrono::seconds;
using testing::Deadline;
using testing::Obituary;
using testing::Record;

template <class M, template <class> class Mutex>
struct AtAWord {
  using Machine = M;
  struct Layout {
    machine::Offset word = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home) { return {layout.take_lines(1)}; }
  AtAWord(M& machine, Layout layout) : core(machine), at(layout), mutex(machine) {}
  Status acquire(Home target) { return mutex.acquire(core.word({target, at.word})); }
  Status release(Home target) {
    mutex.release(core.word({target, at.word}));
    return {};
  }
  M& core;
  Layout at;
  Mutex<M> mutex;
};
template <class M>
struct Spin : AtAWord<M, SpinMutex> {
  static constexpr const char* name = "spin";
  using AtAWord<M, SpinMutex>::AtAWord;
};
template <class M>
struct Sleeping : AtAWord<M, SleepingMutex> {
  static constexpr const char* name = "sleeping";
  using AtAWord<M, SleepingMutex>::AtAWord;
};
template <class M>
struct Mcs : McsLock<M> {
  using Machine = M;
  static constexpr const char* name = "mcs";
  using McsLock<M>::McsLock;
};
template <class M>
struct Bakery : BakeryMutexes<M> {
  using Machine = M;
  static constexpr const char* name = "bakery";
  using BakeryMutexes<M>::BakeryMutexes;
  Status release(Home target) {
    BakeryMutexes<M>::release(target);
    return {};
  }
};

template <class Case>
class Mutexes : public ::testing::Test {
 protected:
  using Machine = typename Case::Machine;

  template <class Body>
  void run(Home cores, machine::IdleHook& idle, Body&& body) {
    testing::run_each<Case, Machine>(
        {.cores = cores, .data_bytes = Record<Machine>::bytes, .seed = cores, .idle = &idle}, body);
  }

  void excludes(Home cores, int steps) {
    Deadline deadline(seconds(60));
    std::vector<std::atomic<int>> inside(cores);
    std::vector<std::atomic<std::uint64_t>> written(cores);
    run(cores, deadline, [&](Machine& core, Case& mutex) {
      Random random = Random::stream(cores, core.self());
      for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
        const Home target = static_cast<Home>(random.below(cores));
        ASSERT_TRUE(mutex.acquire(target).ok());
        EXPECT_EQ(inside[target]++, 0);
        Record<Machine> record(core, target);
        EXPECT_EQ(record.read(), written[target]);
        record.write(++written[target], random.one_in(2));
        --inside[target];
        ASSERT_TRUE(mutex.release(target).ok());
      }
    });
  }
};

using Cases = testing::Product<testing::AnyMachines, Spin, Mcs, Bakery>;
TYPED_TEST_SUITE(Mutexes, Cases, testing::CaseNames);

// Tests that need cores to be threads.
template <class Case>
class ThreadedMutexes : public Mutexes<Case> {};
using ThreadedCases = testing::Product<AllMachines, Spin, Mcs, Bakery>;
TYPED_TEST_SUITE(ThreadedMutexes, ThreadedCases, testing::CaseNames);

TYPED_TEST(Mutexes, Exclude) {
  constexpr int steps = testing::scaled<typename TestFixture::Machine>(4000);
  this->excludes(2, steps);
  this->excludes(3, steps / 2);
  this->excludes(8, steps / 10);
}

TYPED_TEST(ThreadedMutexes, FaultOfTheHookEndsEveryWait) {
  using C = typename TestFixture::Machine;
  Obituary obituary(seconds(60));
  std::atomic<bool> held{false};
  this->run(3, obituary, [&](C& core, TypeParam& mutex) {
    if (core.self() == 1) {
      ASSERT_TRUE(mutex.acquire(0).ok());
      held = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      obituary.announce(1);
      return;
    }
    while (!held) std::this_thread::yield();
    const Status s = mutex.acquire(0);
    EXPECT_EQ(s.code(), Code::process_failed);
    EXPECT_EQ(s.rank(), 1);
  });
}

template <class Case>
class AtWords : public Mutexes<Case> {};
using SpinCases = testing::Product<AllMachines, Spin>;
TYPED_TEST_SUITE(AtWords, SpinCases, testing::CaseNames);

// Shared by the suites of mutexes that are words.
template <class C, class Case>
void expect_named(C& core, Case& at_word) {
  const auto word = core.word({0, at_word.at.word});
  Home holder = 7;
  EXPECT_FALSE(at_word.mutex.held(word, holder));
  ASSERT_TRUE(at_word.mutex.try_acquire(word));
  EXPECT_FALSE(at_word.mutex.try_acquire(word));
  EXPECT_TRUE(at_word.mutex.held(word, holder));
  EXPECT_EQ(holder, 1u);
  at_word.mutex.release(word);
  EXPECT_FALSE(at_word.mutex.held(word, holder));
}

TYPED_TEST(AtWords, NameTheirHolder) {
  Deadline deadline(seconds(60));
  this->run(2, deadline, [&](auto& core, TypeParam& spin) {
    if (core.self() == 1) expect_named(core, spin);
  });
}

// Mutexes that sleep need a machine that has sleeps on words.
template <class Case>
class SleepingOnly : public Mutexes<Case> {};
using SleepingCases = testing::Product<TypeList<coherent::Core>, Sleeping>;
TYPED_TEST_SUITE(SleepingOnly, SleepingCases, testing::CaseNames);

TYPED_TEST(SleepingOnly, Excludes) {
  this->excludes(2, 4000);
  this->excludes(8, 400);
}

TYPED_TEST(SleepingOnly, NamesItsHolderThoughOthersSleep) {
  Deadline deadline(seconds(60));
  std::atomic<bool> held{false};
  this->run(2, deadline, [&](auto& core, TypeParam& sleeping) {
    const auto word = core.word({0, sleeping.at.word});
    if (core.self() == 1) {
      expect_named(core, sleeping);
      ASSERT_TRUE(sleeping.mutex.try_acquire(word));
      held = true;
      while (core.load(word) == 2) ASSERT_TRUE(core.pause(5000).ok());  // until it is marked
      Home holder = 7;
      EXPECT_TRUE(sleeping.mutex.held(word, holder));
      EXPECT_EQ(holder, 1u);
      sleeping.mutex.release(word);
      return;
    }
    while (!held) std::this_thread::yield();
    ASSERT_TRUE(sleeping.mutex.acquire(word).ok());
    sleeping.mutex.release(word);
  });
}

TYPED_TEST(SleepingOnly, FaultOfTheHookEndsItsWait) {
  Obituary obituary(seconds(60));
  std::atomic<bool> held{false};
  this->run(2, obituary, [&](auto& core, TypeParam& sleeping) {
    if (core.self() == 1) {
      ASSERT_TRUE(sleeping.acquire(0).ok());
      obituary.announce(1);
      held = true;
      return;
    }
    while (!held) std::this_thread::yield();
    EXPECT_EQ(sleeping.acquire(0).code(), Code::process_failed);
  });
}

template <class Case>
class McsOnly : public Mutexes<Case> {};
using McsCases = testing::Product<AllMachines, Mcs>;
TYPED_TEST_SUITE(McsOnly, McsCases, testing::CaseNames);

// The release of a core whose successor has joined the queue and not yet linked itself.
TYPED_TEST(McsOnly, ReleaseWaitsForTheLink) {
  using C = typename TestFixture::Machine;
  Deadline deadline(seconds(60));
  machine::SyncLayout layout(C::reserved_sync_bytes(2));
  const auto at = TypeParam::take(layout, 2);
  Ensemble<C> ensemble(
      {.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = 64, .idle = &deadline});
  std::atomic<bool> joined{false};
  ensemble.run([&](C& core) {
    if (core.self() == 0) {
      TypeParam mutex(core, at);
      ASSERT_TRUE(mutex.acquire(1).ok());
      while (!joined) std::this_thread::yield();
      ASSERT_TRUE(mutex.release(1).ok());
      return;
    }
    // The steps of acquire, one by one; 2 is the name of core 1.
    WaitNode<C> node(core, at.node);
    node.arm(0);
    const auto tail = core.word({1, at.tail});
    while (core.load(tail) != 1) ASSERT_TRUE(core.pause(5000).ok());
    ASSERT_EQ(core.exchange(tail, 2), 1u);
    joined = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    node.link(1, 2);
    ASSERT_TRUE(node.wait_granted().ok());
  });
}

}  // namespace
}  // namespace tombolo::sync
