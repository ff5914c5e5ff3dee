// SPDX-License-Identifier: Apache-2.0
// Purpose: random nested programs with kills, breaks and failures neither hang nor leave anything.
// Thread safety: -
#include <gtest/gtest.h>

#include "svp/svp.h"
#include "svp/testing/random_program.h"

namespace tombolo::svp {
namespace {

constexpr std::uint64_t programs = 4000;

class RandomPrograms : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Workers, RandomPrograms, ::testing::Values(1u, 2u, 4u));

TEST_P(RandomPrograms, EndAndLeaveNothing) {
  LocalPlace place(GetParam());
  LocalPlace elsewhere(2);
  ExclusivePlace exclusive;
  std::uint64_t threads = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    testing::RandomProgram program(seed, elsewhere, exclusive);
    auto family = create(place, [&] { program.run(); });
    if (seed % 16 == 0) family.kill();
    family.sync();
    EXPECT_EQ(program.alive(), 0);
    EXPECT_EQ(program.in_exclusive(), 0);
    threads += program.threads();
  }
  EXPECT_GT(threads, 4 * programs);
  EXPECT_EQ(Pool::blocked_threads(), 0u);
}

}  // namespace
}  // namespace tombolo::svp
