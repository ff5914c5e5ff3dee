// SPDX-License-Identifier: Apache-2.0
// Purpose: the validator of post/start/complete/wait on all machines: random groups, skewed cores,
// many epochs, more cores than a word has bits; and the proof that it finds the error of 000 figure
// 3.6 in the protocol that had it.
//
// A schedule is a list of epochs that all cores know. In each, every core has a role: the targets
// of a random bipartite graph post, the origins write a mark to each of their targets and complete.
// Nothing but the protocol under test keeps the cores together, so that some run far ahead.
// Thread safety: -
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "sync/epochs/active_target.h"
#include "sync/epochs/broken/counter_only_target.h"
#include "sync/testing/cases.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using machine::testing::EnsembleShape;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Deadline;
using testing::Obituary;

template <class M>
struct TriggerOnly {
  using Machine = M;
  using Epochs = ActiveTarget<M>;
  static constexpr const char* name = "trigger_only";
  static Status start(Epochs&, std::span<const Home>) { return {}; }
  static Status before_access(Epochs& epochs, Home target) { return epochs.await_post(target); }
};
template <class M>
struct CounterOnly {
  using Machine = M;
  using Epochs = broken::CounterOnlyTarget<M>;
  static constexpr const char* name = "counter_only";
  static Status start(Epochs& epochs, std::span<const Home> targets) {
    return epochs.start(targets);
  }
  static Status before_access(Epochs&, Home) { return {}; }
};

// The members of one epoch.
struct Epoch {
  std::vector<std::vector<Home>> targets_of;  // by origin
  std::vector<std::vector<Home>> origins_of;  // by target
  std::vector<std::uint64_t> delay_ns_of;     // by core, before its part; empty: random, short
};

std::vector<Epoch> random_schedule(Home cores, int epochs, std::uint64_t seed) {
  Random random(seed);
  std::vector<Epoch> schedule(epochs);
  for (Epoch& epoch : schedule) {
    epoch.targets_of.resize(cores);
    epoch.origins_of.resize(cores);
    const std::uint64_t density = 1 + random.below(4);
    for (Home origin = 0; origin < cores; ++origin)
      for (Home target = 0; target < cores; ++target)
        if (random.one_in(density * (cores > 8 ? 8 : 1))) {
          epoch.targets_of[origin].push_back(target);
          epoch.origins_of[target].push_back(origin);
        }
  }
  return schedule;
}

template <class Case>
class Epochs : public ::testing::Test {
 protected:
  using Machine = typename Case::Machine;
  using Under = typename Case::Epochs;

  // The first error of a run; empty if there is none.
  std::string run(Home cores, const std::vector<Epoch>& schedule, std::uint64_t seed,
                  machine::IdleHook& idle) {
    open_ = std::vector<std::atomic<int>>(cores);
    error_.clear();
    failed_ = false;
    const EnsembleShape shape{
        .cores = cores, .data_bytes = cores * mark_bytes, .seed = seed, .idle = &idle};
    testing::run_each<Under, Machine>(shape, [&](Machine& core, Under& epochs) {
      Random random = Random::stream(seed, core.self());
      for (std::size_t i = 0; i < schedule.size() && !failed_; ++i) {
        const std::vector<std::uint64_t>& delays_ns = schedule[i].delay_ns_of;
        if (!delays_ns.empty())
          (void)core.pause(delays_ns[core.self()]).ok();
        else if (random.one_in(4))
          (void)core.pause(random.below(30000)).ok();
        if (Status s = step(core, epochs, schedule[i], static_cast<int>(i + 1)); !s.ok())
          report(s.message());
      }
    });
    return error_;
  }

 private:
  static constexpr std::size_t mark_bytes = 8;  // neighbours in a line: only write_through is right

  static machine::DataPlace mark(Home target, Home origin) { return {target, origin * mark_bytes}; }

  void report(const std::string& what) {
    if (!failed_.exchange(true)) error_ = what;
  }

  Status step(Machine& core, Under& epochs, const Epoch& epoch, int number) {
    const Home self = core.self();
    const std::vector<Home>& origins = epoch.origins_of[self];
    const std::vector<Home>& targets = epoch.targets_of[self];
    if (!origins.empty()) {
      open_[self] = number;
      epochs.post(origins);
    }
    TOMBOLO_TRY(Case::start(epochs, targets));
    for (const Home target : targets) {
      if (number % 3 == 0) continue;  // complete has to wait for the post then
      TOMBOLO_TRY(Case::before_access(epochs, target));
      if (open_[target] != number)
        report("origin " + std::to_string(self) + " reached target " + std::to_string(target) +
               " outside its epoch");
      const std::uint64_t value = number;
      TOMBOLO_TRY(core.write_through(mark(target, self), &value, sizeof value));
    }
    core.drain();
    TOMBOLO_TRY(epochs.complete(targets));
    if (origins.empty()) return {};
    TOMBOLO_TRY(epochs.wait());
    open_[self] = 0;
    for (const Home origin : origins) {
      std::uint64_t value = 0;
      core.refresh(mark(self, origin), sizeof value);
      TOMBOLO_TRY(core.read(mark(self, origin), &value, sizeof value));
      if (number % 3 != 0 && value != static_cast<std::uint64_t>(number))
        report("target " + std::to_string(self) + " misses what origin " + std::to_string(origin) +
               " wrote");
    }
    return {};
  }

  std::vector<std::atomic<int>> open_;  // by target: the number of its open exposure epoch
  std::atomic<bool> failed_{false};
  std::string error_;
};

using Cases = testing::Product<testing::AnyMachines, TriggerOnly>;
TYPED_TEST_SUITE(Epochs, Cases, testing::CaseNames);

// Tests that need cores to be threads.
template <class Case>
class ThreadedActiveTarget : public Epochs<Case> {};
using ThreadedCases = testing::Product<AllMachines, TriggerOnly>;
TYPED_TEST_SUITE(ThreadedActiveTarget, ThreadedCases, testing::CaseNames);

template <class Case>
constexpr int steps = testing::scaled<typename Case::Machine>(1000);

TYPED_TEST(Epochs, RandomGroups) {
  Deadline deadline(seconds(100));
  for (const Home cores : {1, 2, 3, 5})
    EXPECT_EQ(
        this->run(cores, random_schedule(cores, steps<TypeParam> / cores, cores), cores, deadline),
        "");
}

TYPED_TEST(Epochs, MoreCoresThanBitsInAWord) {
  Deadline deadline(seconds(100));
  EXPECT_EQ(this->run(70, random_schedule(70, 3, 1), 1, deadline), "");
}

TYPED_TEST(ThreadedActiveTarget, FaultOfTheHookEndsEveryWait) {
  using C = typename TestFixture::Machine;
  Obituary obituary(seconds(60));
  const EnsembleShape shape{.cores = 4, .idle = &obituary};
  testing::run_each<ActiveTarget<C>, C>(shape, [&](C& core, ActiveTarget<C>& epochs) {
    const std::vector<Home> dead{3};
    Status s;
    switch (core.self()) {
      case 0:
        epochs.post(dead);
        EXPECT_FALSE(epochs.test());
        s = epochs.wait();
        break;
      case 1:
        EXPECT_FALSE(epochs.posted(3));
        s = epochs.await_post(3);
        break;
      case 2:
        s = epochs.complete(dead);
        break;
      default:
        std::this_thread::sleep_for(milliseconds(20));
        obituary.announce(3);
        return;
    }
    EXPECT_EQ(s.code(), Code::process_failed) << "core " << core.self();
    EXPECT_EQ(s.rank(), 3);
  });
}

// MPI_MODE_NOCHECK: the counter alone, in turn with matched epochs.
TYPED_TEST(Epochs, UnmatchedEpochs) {
  using C = typename TestFixture::Machine;
  Deadline deadline(seconds(60));
  std::atomic<int> posted{0};
  const EnsembleShape shape{.cores = 2, .idle = &deadline};
  testing::run_each<ActiveTarget<C>, C>(shape, [&](C& core, ActiveTarget<C>& epochs) {
    const std::vector<Home> peer{1 - core.self()};
    for (int round = 1; round <= 50; ++round) {
      const bool matched = round % 3 == 0;
      if (core.self() == 0) {
        epochs.post(peer, matched);
        posted = round;
        ASSERT_TRUE(epochs.wait().ok());
        EXPECT_TRUE(epochs.test());
      } else {
        while (!matched && posted < round) ASSERT_TRUE(core.pause(5000).ok());
        ASSERT_TRUE(epochs.complete(peer, matched).ok());
      }
    }
  });
}

TYPED_TEST(Epochs, MemoryPerCoreIsOneBitPerCore) {
  using C = typename TestFixture::Machine;
  const auto bytes = [](Home cores) {
    machine::SyncLayout layout(0);
    ActiveTarget<C>::take(layout, cores);
    return layout.bytes();
  };
  EXPECT_EQ(bytes(2), 128u);
  EXPECT_EQ(bytes(512), 128u);
  EXPECT_EQ(bytes(4096), 64u + 512u);
}

// The broken protocol

template <class Case>
class BrokenEpochs : public Epochs<Case> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the error is a data race, which the sanitizer reports as its own failure";
#endif
  }
};
using BrokenCases = testing::Product<AllMachines, CounterOnly>;
TYPED_TEST_SUITE(BrokenEpochs, BrokenCases, testing::CaseNames);

// Figure 3.6: core 0 is the origin, its group is core 1, then core 2; core 2 comes first. Core 1 is
// delayed for longer in each attempt, since a busy processor may delay core 2 just as much.
TYPED_TEST(BrokenEpochs, IsFoundByTheFigure) {
  std::vector<Epoch> schedule(2, Epoch{std::vector<std::vector<Home>>(3), {{}, {}, {}}, {}});
  schedule[0].targets_of[0] = {1};
  schedule[0].origins_of[1] = {0};
  schedule[1].targets_of[0] = {2};
  schedule[1].origins_of[2] = {0};
  schedule[1].delay_ns_of = {0, 0, 0};
  int found = 0;
  for (std::uint64_t attempt = 1; attempt <= 8 && found == 0; ++attempt) {
    Deadline deadline(seconds(1));  // the origin's error may leave its target waiting
    schedule[0].delay_ns_of = {0, (1u << attempt) * 1'000'000, 0};
    found +=
        this->run(3, schedule, attempt, deadline).find("outside its epoch") != std::string::npos;
  }
  EXPECT_GT(found, 0);
}

TYPED_TEST(BrokenEpochs, IsFoundByRandomGroups) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 5 && found == 0; ++seed) {
    Deadline deadline(seconds(1));
    found += this->run(5, random_schedule(5, 40, seed), seed, deadline) != "";
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace tombolo::sync
