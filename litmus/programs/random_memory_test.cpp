// SPDX-License-Identifier: Apache-2.0
// Purpose: random programs on virtual shared memory take random walks on the explored machine, and
// a model of consistency judges all that their threads see. A failure names the seed, which fixes
// the program and the walk.
// Thread safety: -
#include <gtest/gtest.h>

#include "dsm/testing/faulty.h"
#include "dsm/testing/tunings.h"
#include "litmus/explorer/run.h"
#include "litmus/programs/omitting.h"
#include "litmus/programs/random_memory.h"

namespace tombolo::litmus {
namespace {

using dsm::Regional;
using dsm::Release;
using dsm::Sequential;
using dsm::testing::FaultyPages;
using dsm::testing::FaultyTransport;
using dsm::testing::Model;
using MemoryOmit = dsm::testing::Omit;
using Steered = Noting<Explored>;

// False sharing, evictions, and rings that are run over, more or less by the seed.
RandomMemory drawn(std::uint64_t seed, Model model, const dsm::Tuning& tuning) {
  Random random = Random::stream(seed, 7);
  return {.seed = seed,
          .shape = {.threads = static_cast<dsm::Thread>(2 + random.below(2)),
                    .pages = 2 + random.below(2),
                    .page_bytes = line_bytes,
                    .cached_pages = static_cast<std::uint32_t>(1 + random.below(3)),
                    .locks = 2,
                    .notices = static_cast<std::uint32_t>(1 + random.below(6)),
                    .updates = static_cast<std::uint32_t>(1 + random.below(6)),
                    .tuning = tuning},
          .model = model};
}

// The failure, or nothing.
template <class Thread>
std::string failure_of_walk(std::uint64_t seed, Model model, const dsm::Tuning& tuning = {}) {
  RandomMemoryProgram<Thread> program(drawn(seed, model, tuning));
  Run run(program, {.evictions = no_bound, .pauses = no_bound, .loads = no_bound});
  run.restart();
  Random random = Random::stream(seed, 8);
  std::vector<Transition> choices;
  while (run.failure().empty() && run.enabled(choices))
    run.apply(choices[random.below(choices.size())]);
  if (run.failure().empty() && !run.ended()) return "stuck: " + run.where_everybody_is();
  if (run.failure().empty()) (void)run.outcome();
  return run.failure();
}

template <class Thread>
void expect_agreement(Model model, std::uint64_t walks, const dsm::Tuning& tuning = {}) {
  for (std::uint64_t seed = 1; seed <= walks; ++seed)
    ASSERT_EQ(failure_of_walk<Thread>(seed, model, tuning), "") << "seed " << seed;
}

TEST(RandomMemoryPrograms, AgreeWithRegionalConsistency) {
  expect_agreement<ThreadOn<Steered, Regional>>(Model::regional, 6000);
}

// Stores are performed when another thread takes a lock. By rule 1 of regional consistency, too:
// a thread tells its stores before it takes a lock.
TEST(RandomMemoryPrograms, AgreeWithReleaseConsistency) {
  for (const Model model : {Model::lazy_release, Model::regional})
    expect_agreement<ThreadOn<Steered, Release>>(model, 3000);
}

TEST(RandomMemoryPrograms, AgreeWithoutEachTuning) {
  for (bool dsm::Tuning::*const off : dsm::tunings) {
    expect_agreement<ThreadOn<Steered, Regional>>(Model::regional, 300, dsm::testing::without(off));
    expect_agreement<ThreadOn<Steered, Release>>(Model::lazy_release, 300,
                                                 dsm::testing::without(off));
  }
}

TEST(RandomMemoryPrograms, AgreeWithSequentialConsistency) {
  expect_agreement<ThreadOn<Steered, Sequential>>(Model::sequential, 2000);
}

// The judge is no friend of the protocol: regional consistency is weaker than these.
TEST(RandomMemoryPrograms, AreHeldToTheModelThatIsNamed) {
  for (const Model model : {Model::sequential, Model::release}) {
    std::uint64_t seed = 1;
    while (seed <= 200 && failure_of_walk<ThreadOn<Steered, Regional>>(seed, model).empty()) ++seed;
    EXPECT_LE(seed, 200u) << name_of(model);
  }
}

template <class Thread>
void expect_failure(const char* twin) {
  std::uint64_t seed = 1;
  while (seed <= 200 && failure_of_walk<Thread>(seed, Model::regional).empty()) ++seed;
  EXPECT_LE(seed, 200u) << twin;
}

template <MemoryOmit What>
using Faulty = dsm::testing::ProgramThread<FaultyTransport<ExploredTransport<Steered>, What>,
                                           dsm::testing::PrivatePages, Regional>;

TEST(RandomMemoryPrograms, NoticeWhatIsLeftOut) {
  expect_failure<ThreadOn<Noting<Omitting<Explored, Omit::publish>>, Regional>>("publish");
  expect_failure<ThreadOn<Noting<Omitting<Explored, Omit::refresh>>, Regional>>("refresh");
  expect_failure<Faulty<MemoryOmit::complete>>("complete");
  expect_failure<Faulty<MemoryOmit::accumulate>>("accumulate_xor");
  expect_failure<Faulty<MemoryOmit::put>>("put");
  expect_failure<Faulty<MemoryOmit::expose>>("expose");
  expect_failure<Faulty<MemoryOmit::update>>("put_update");
}

}  // namespace
}  // namespace tombolo::litmus
