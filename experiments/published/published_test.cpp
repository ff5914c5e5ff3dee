// SPDX-License-Identifier: Apache-2.0
// The published algorithms on the simulated chip: locks exclude, and every post is completed.
#include <gtest/gtest.h>

#include "backends/scc/job.h"
#include "base/random.h"
#include "experiments/published/best_effort.h"
#include "experiments/published/gats_window.h"
#include "experiments/published/match_list_gats.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/mcs_writer_preference.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments::published {
namespace {

using machine::Home;
using simulator::Duration;

constexpr int lock_count = 60;  // of each process

// The lock holders, by target.
struct Inside {
  int readers = 0;
  int writers = 0;
};

template <class Core, class Locks>
void lock_at_random(Core& core, Locks& locks, std::uint64_t seed, unsigned exclusive_percent,
                    std::vector<Inside>* inside, int* entered) {
  Random random = Random::stream(seed, core.self());
  for (int i = 0; i < lock_count; ++i) {
    const auto target = static_cast<Home>(random.below(inside->size()));
    const bool exclusive = random.below(100) < exclusive_percent;
    const auto access = exclusive ? sync::Access::exclusive : sync::Access::shared;
    ASSERT_TRUE(locks.lock(access, target).ok());
    Inside& in = (*inside)[target];
    ++(exclusive ? in.writers : in.readers);
    for (int look = 0; look < 3; ++look) {
      EXPECT_LE(in.writers, 1);
      EXPECT_TRUE(in.writers == 0 || in.readers == 0);
      core.cpu().compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(700))));
      core.cpu().wait_for_writes();
    }
    --(exclusive ? in.writers : in.readers);
    ++*entered;
    ASSERT_TRUE(locks.unlock(access, target).ok());
    core.cpu().compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(2000))));
  }
}

class Published : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  template <class Algorithm, class Core, class... Options>
  void run(Home processes, const std::function<void(Core&, Algorithm&)>& program,
           const Options&... options) {
    scc::Parameters chip;
    ASSERT_TRUE(scc::find_parameters("scc", &chip).ok());
    machine::SyncLayout sync(Core::reserved_sync_bytes(processes));
    const auto layout = Algorithm::take(sync, processes);
    scc::JobShape shape;
    shape.processes = processes;
    shape.sync_bytes = sync.bytes();
    shape.options.seed = GetParam();
    scc::Job job(chip, shape);
    const simulator::RunResult result = job.run([&](const scc::Attachment& at, scc::Cpu&) {
      Core core(at);
      Algorithm algorithm(core, layout, options...);
      program(core, algorithm);
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }

  template <template <class> class Algorithm, class... Options>
  void excludes(std::initializer_list<Home> numbers_of_targets, const Options&... options) {
    using Core = SpinningCore;
    using Locks = Algorithm<Core>;
    constexpr Home process_count = 13;
    for (const unsigned exclusive_percent : {0u, 20u, 50u, 100u})
      for (const Home targets : numbers_of_targets) {
        std::vector<Inside> inside(targets);
        int entered = 0;
        const std::function<void(Core&, Locks&)> program = [&](Core& core, Locks& locks) {
          lock_at_random(core, locks, GetParam(), exclusive_percent, &inside, &entered);
        };
        run<Locks, Core>(process_count, program, options...);
        EXPECT_EQ(entered, int{process_count} * lock_count);
      }
  }

  // How often process 1 reads a register while it waits for a lock of its own: for a millisecond
  // process 0 holds the lock, or the register of the global counter.
  std::uint64_t tests_while_waiting(BackOff backoff, bool at_register) {
    using Locks = BestEffort<SpinningCore>;
    constexpr std::int64_t held_ns = 1'000'000;
    std::uint64_t tests = 0;
    const std::function<void(SpinningCore&, Locks&)> program = [&](SpinningCore& core,
                                                                   Locks& locks) {
      scc::Cpu& cpu = core.cpu();
      if (core.self() == 1) {
        cpu.compute(Duration::nanoseconds(20'000));  // the other has it by now
        ASSERT_TRUE(locks.lock(sync::Access::exclusive, 1).ok());
        tests = cpu.counters().tests;
        ASSERT_TRUE(locks.unlock(sync::Access::exclusive, 1).ok());
      } else if (at_register) {
        ASSERT_TRUE(cpu.test_and_set(scc::CoreId(0)));
        cpu.compute(Duration::nanoseconds(held_ns));
        cpu.clear(scc::CoreId(0));
      } else {
        ASSERT_TRUE(locks.lock(sync::Access::exclusive, 1).ok());
        cpu.compute(Duration::nanoseconds(held_ns));
        ASSERT_TRUE(locks.unlock(sync::Access::exclusive, 1).ok());
      }
    };
    run<Locks, SpinningCore>(2, program, backoff);
    return tests;
  }
};

TEST_P(Published, QueueWithWriterPreferenceExcludesAndLetsEverybodyIn) {
  excludes<McsWriterPreference>({1, 3});
}

TEST_P(Published, BestEffortExcludesAndLetsEverybodyIn) {
  excludes<BestEffort>({1, 3}, BackOff::tries_and_global_counter);
  excludes<BestEffort>({1, 3}, BackOff::tries);
  // Without back-off, tries of readers at few targets keep writers out for ever.
  excludes<BestEffort>({13}, BackOff::none);
}

// The order in which a writer and a reader get in that come while another reader is inside, the
// writer first.
template <class Locks>
class Arrivals {
 public:
  std::function<void(SpinningCore&, Locks&)> program() {
    return [this](SpinningCore& core, Locks& locks) {
      scc::Cpu& cpu = core.cpu();
      const auto access = core.self() == 1 ? sync::Access::exclusive : sync::Access::shared;
      cpu.compute(Duration::nanoseconds(core.self() * std::int64_t{30'000}));
      ASSERT_TRUE(locks.lock(access, 0).ok());
      entered.push_back(core.self());
      if (core.self() == 0) cpu.compute(Duration::nanoseconds(300'000));
      cpu.wait_for_writes();
      ASSERT_TRUE(locks.unlock(access, 0).ok());
    };
  }
  std::vector<Home> entered;
};

TEST_P(Published, TheQueuePrefersAWriterToLaterReaders) {
  Arrivals<McsWriterPreference<SpinningCore>> arrivals;
  run<McsWriterPreference<SpinningCore>, SpinningCore>(3, arrivals.program());
  EXPECT_EQ(arrivals.entered, (std::vector<Home>{0, 1, 2}));
}

TEST_P(Published, BestEffortLetsLaterReadersInBeforeAWriter) {
  for (const BackOff backoff : {BackOff::none, BackOff::tries, BackOff::tries_and_global_counter}) {
    Arrivals<BestEffort<SpinningCore>> arrivals;
    run<BestEffort<SpinningCore>, SpinningCore>(3, arrivals.program(), backoff);
    EXPECT_EQ(arrivals.entered, (std::vector<Home>{0, 2, 1}));
  }
}

// A millisecond is ten doublings of the first pause: some tests for each, and not for each of a
// thousand microseconds.
TEST_P(Published, BackOffDoublesAfterEachFailure) {
  for (const bool at_register : {false, true}) {
    const std::uint64_t tests = tests_while_waiting(BackOff::tries_and_global_counter, at_register);
    EXPECT_GE(tests, 10u);
    EXPECT_LE(tests, 60u);
  }
}

// A read of the register takes a few tenths of a microsecond.
TEST_P(Published, BackOffAsPrintedSpinsOnTheRegisterAllTheSame) {
  const std::uint64_t between_tries = tests_while_waiting(BackOff::tries, false);
  EXPECT_GE(between_tries, 10u);
  EXPECT_LE(between_tries, 60u);
  EXPECT_GE(tests_while_waiting(BackOff::tries, true), 1000u);
}

// Each process is target of its two predecessors and origin of its two successors.
struct Ring {
  static constexpr Home process_count = 19;
  explicit Ring(Home self) : me(self) {}
  Home at(Home distance) const { return (me + distance) % process_count; }
  Home me;
  std::vector<Home> origins = {at(process_count - 1), at(process_count - 2)};
  std::vector<Home> targets = {at(1), at(2)};
};
constexpr int epochs = 40;

// A process's view of the partners' epochs shows that none ends before all have taken part in it.
template <template <class> class Gats>
void take_part(SpinningCore& core, Gats<SpinningCore>& gats, std::uint64_t seed,
               std::vector<int>* posted, std::vector<int>* completed) {
  const Ring ring(core.self());
  Random random = Random::stream(seed, ring.me);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    (*posted)[ring.me] = epoch;
    ASSERT_TRUE(gats.post(ring.origins).ok());
    ASSERT_TRUE(gats.start(ring.targets).ok());
    core.cpu().compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(5000))));
    core.cpu().wait_for_writes();
    (*completed)[ring.me] = epoch;
    ASSERT_TRUE(gats.complete().ok());
    for (const Home target : ring.targets) EXPECT_GE((*posted)[target], epoch);
    ASSERT_TRUE(gats.wait().ok());
    for (const Home origin : ring.origins) EXPECT_GE((*completed)[origin], epoch);
  }
}

TEST_P(Published, EveryPostIsSeenAndCompletedOnce) {
  const auto check = [this]<template <class> class Gats>() {
    std::vector<int> posted(Ring::process_count);
    std::vector<int> completed(Ring::process_count);
    const std::function<void(SpinningCore&, Gats<SpinningCore>&)> program =
        [&](SpinningCore& core, Gats<SpinningCore>& gats) {
          take_part(core, gats, GetParam(), &posted, &completed);
        };
    run<Gats<SpinningCore>, SpinningCore>(Ring::process_count, program);
    EXPECT_EQ(completed, std::vector<int>(Ring::process_count, epochs));
  };
  check.template operator()<MatchVectorGats>();
  check.template operator()<MatchListGats>();
}

// Puts wait for the target's post, and are seen after its wait: also where own windows are cached,
// as they are without the chip's erratum.
TEST_P(Published, PutsOfAnEpochAreSeenAfterIt) {
  const auto check = []<class Window>(bool erratum) {
    scc::Parameters chip;
    ASSERT_TRUE(scc::find_parameters("scc", &chip).ok());
    chip.errata.mpbt_wt_reads_uncached = erratum;
    scc::JobShape shape;
    shape.processes = Ring::process_count;
    shape.sync_bytes = Window::sync_bytes(shape.processes);
    shape.data_bytes = 64;
    shape.options.seed = GetParam();
    scc::Job job(chip, shape);
    int seen = 0;
    const simulator::RunResult result = job.run([&](const scc::Attachment& at, scc::Cpu& cpu) {
      Window window(at);
      const Ring ring(at.self);
      Random random = Random::stream(GetParam(), ring.me);
      for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        ASSERT_TRUE(window.post(ring.origins).ok());
        ASSERT_TRUE(window.start(ring.targets).ok());
        std::uint64_t own = 0;  // in the arrivals' line, which is in the cache from now on
        ASSERT_TRUE(window.core().read({ring.me, 16}, &own, sizeof own).ok());
        for (std::size_t n = 0; n < 2; ++n)
          ASSERT_TRUE(window.put(ring.targets[n], 8 * n, &epoch, sizeof epoch).ok());
        cpu.compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(5000))));
        ASSERT_TRUE(window.complete().ok());
        ASSERT_TRUE(window.wait().ok());
        std::uint64_t came[2];
        ASSERT_TRUE(window.core().read({ring.me, 0}, came, sizeof came).ok());
        EXPECT_EQ(came[0], epoch);
        EXPECT_EQ(came[1], epoch);
        ++seen;
      }
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_EQ(seen, int{Ring::process_count} * epochs);
  };
  for (const bool erratum : {true, false}) {
    check.template operator()<GatsWindow<SpinningCore, MatchVectorGats>>(erratum);
    check.template operator()<GatsWindow<SpinningCore, MatchListGats>>(erratum);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Published, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace tombolo::experiments::published
