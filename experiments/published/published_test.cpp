// SPDX-License-Identifier: Apache-2.0
// The published algorithms on the simulated chip: locks exclude, and every post is completed.
#include <gtest/gtest.h>

#include "backends/scc/job.h"
#include "base/random.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/mcs_writer_preference.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments::published {
namespace {

using machine::Home;
using simulator::Duration;

constexpr int kLocks = 60;  // of each process

// Who is in, by target.
struct Inside {
  int readers = 0;
  int writers = 0;
};

template <class Core>
void lock_at_random(Core& core, McsWriterPreference<Core>& locks, std::uint64_t seed,
                    unsigned exclusive_percent, std::vector<Inside>* inside, int* entered) {
  Random random = Random::stream(seed, core.self());
  for (int i = 0; i < kLocks; ++i) {
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
  template <class Algorithm, class Core>
  void run(Home processes, const std::function<void(Core&, Algorithm&)>& program) {
    scc::Parameters chip;
    ASSERT_TRUE(scc::find_parameters("scc", &chip).ok());
    machine::SyncLayout sync(Core::reserved_sync_bytes(processes));
    const auto layout = Algorithm::take(sync, processes);
    scc::JobShape shape;
    shape.processes = processes;
    shape.sync_bytes = sync.bytes();
    shape.options.seed = GetParam();
    scc::Job job(chip, shape);
    const simulator::RunResult result = job.run([&](const machine::Attachment& at, scc::Cpu&) {
      Core core(at);
      Algorithm algorithm(core, layout);
      program(core, algorithm);
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }

  template <class Core>
  void excludes() {
    using Locks = McsWriterPreference<Core>;
    constexpr Home kProcesses = 13;
    for (const unsigned exclusive_percent : {0u, 20u, 50u, 100u})
      for (const Home targets : {1u, 3u}) {
        std::vector<Inside> inside(targets);
        int entered = 0;
        run<Locks, Core>(kProcesses, [&](Core& core, Locks& locks) {
          lock_at_random(core, locks, GetParam(), exclusive_percent, &inside, &entered);
        });
        EXPECT_EQ(entered, int{kProcesses} * kLocks);
      }
  }
};

TEST_P(Published, QueueWithWriterPreferenceExcludesAndLetsEverybodyIn) { excludes<SpinningCore>(); }

TEST_P(Published, QueueWithWriterPreferenceWorksWhereRegistersBackOff) {
  excludes<BackingOffCore>();
}

// Each process is target of its two predecessors and origin of its two successors; what it sees of
// the partners' epochs says that no epoch ends before all have taken part in it.
TEST_P(Published, EveryPostIsSeenAndCompletedOnce) {
  constexpr Home kProcesses = 19;
  constexpr int kEpochs = 40;
  std::vector<int> posted(kProcesses);
  std::vector<int> completed(kProcesses);
  run<MatchVectorGats<SpinningCore>, SpinningCore>(
      kProcesses, [&](SpinningCore& core, MatchVectorGats<SpinningCore>& gats) {
        const Home me = core.self();
        Random random = Random::stream(GetParam(), me);
        const auto at = [&](Home distance) { return (me + distance) % kProcesses; };
        const std::vector<Home> origins = {at(kProcesses - 1), at(kProcesses - 2)};
        const std::vector<Home> targets = {at(1), at(2)};
        for (int epoch = 1; epoch <= kEpochs; ++epoch) {
          posted[me] = epoch;
          ASSERT_TRUE(gats.post(origins).ok());
          ASSERT_TRUE(gats.start(targets).ok());
          core.cpu().compute(Duration::nanoseconds(static_cast<std::int64_t>(random.below(5000))));
          core.cpu().wait_for_writes();
          completed[me] = epoch;
          ASSERT_TRUE(gats.complete().ok());
          for (const Home target : targets) EXPECT_GE(posted[target], epoch);
          ASSERT_TRUE(gats.wait().ok());
          for (const Home origin : origins) EXPECT_GE(completed[origin], epoch);
        }
      });
  EXPECT_EQ(completed, std::vector<int>(kProcesses, kEpochs));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Published, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace tombolo::experiments::published
