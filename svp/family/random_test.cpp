// SPDX-License-Identifier: Apache-2.0
// Purpose: random nested programs with kills, breaks and failures neither hang nor leave anything.
//
//   svp_family_random_test [--first SEED] [--programs N] [--gtest_filter=...]
//
// N programs with each number of workers, with the seeds from SEED on, or else those of the day
// (svp/testing/random_choices.h). A failure names the seed, and the next run with it makes the same
// program; its schedule differs.
// Thread safety: -
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "svp/api/include/tombolo/svp.hpp"
#include "svp/testing/random_choices.h"
#include "svp/testing/random_program.h"

namespace tombolo::svp {
namespace {

testing::RandomChoices choices {  // NOLINT: main's
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  .programs = 500
#else
  .programs = 2000
#endif
};

class RandomPrograms : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Workers, RandomPrograms, ::testing::Values(1u, 2u, 4u));

TEST_P(RandomPrograms, EndAndLeaveNothing) {
  choices.say();
  LocalPlace place(GetParam());
  LocalPlace elsewhere(2);
  ExclusivePlace exclusive;
  std::uint64_t threads = 0;
  std::uint64_t begun = 0;
  std::uint64_t exclusive_begun = 0;
  for (std::uint64_t seed = choices.first; seed < choices.first + choices.programs; ++seed) {
    SCOPED_TRACE(::testing::Message() << "again: --first " << seed << " --programs 1");
    testing::say_seed_at_alarm(seed);
    testing::RandomProgram program(seed, elsewhere, exclusive);
    auto family = create(place, [&] { program.run(); });
    if (seed % 16 == 0) family.kill();
    family.sync();
    ASSERT_EQ(program.alive(), 0);
    ASSERT_EQ(program.not_alone(), 0u);
    ASSERT_EQ(Pool::blocked_threads(), 0u);
    threads += program.threads();
    begun += program.begun();
    exclusive_begun += program.exclusive();
  }
  alarm(0);
  if (choices.programs < 100) return;
  EXPECT_GT(threads, 4 * choices.programs);
  EXPECT_GT(begun, 0u) << "kills have reached threads that ran";
  EXPECT_GT(exclusive_begun, 0u);
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (tombolo::svp::choices.read(argc, argv)) return RUN_ALL_TESTS();
  std::fprintf(stderr, "usage: %s [--first SEED] [--programs N]\n", argv[0]);
  return 2;
}
