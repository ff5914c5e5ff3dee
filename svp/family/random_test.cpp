// SPDX-License-Identifier: Apache-2.0
// Purpose: random nested programs with kills, breaks and failures neither hang nor leave anything.
//
//   svp_family_random_test [--first SEED] [--programs N] [--gtest_filter=...]
//
// N programs with each number of workers, with the seeds from SEED on. A failure names the seed,
// and the next run with it makes the same program; its schedule differs.
// Thread safety: -
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string_view>

#include "base/options.h"
#include "svp/svp.h"
#include "svp/testing/random_program.h"

namespace tombolo::svp {
namespace {

struct Choices {
  std::uint64_t first = 1;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::uint64_t programs = 500;
#else
  std::uint64_t programs = 2000;
#endif
};
Choices choices;  // NOLINT: main's

// Where a program hangs, its seed is told.
void say_seed_at_alarm(std::uint64_t seed) {
  constexpr unsigned most_s = 120;
  static std::atomic<std::uint64_t> running{0};
  running = seed;
  struct sigaction action {};
  action.sa_handler = [](int) {
    char line[64];
    const int n = std::snprintf(line, sizeof line, "seed %llu hangs\n",
                                static_cast<unsigned long long>(running.load()));
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line, static_cast<std::size_t>(n));
    _exit(1);
  };
  sigaction(SIGALRM, &action, nullptr);
  alarm(most_s);
}

class RandomPrograms : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Workers, RandomPrograms, ::testing::Values(1u, 2u, 4u));

TEST_P(RandomPrograms, EndAndLeaveNothing) {
  LocalPlace place(GetParam());
  LocalPlace elsewhere(2);
  ExclusivePlace exclusive;
  std::uint64_t threads = 0;
  std::uint64_t begun = 0;
  std::uint64_t exclusive_begun = 0;
  for (std::uint64_t seed = choices.first; seed < choices.first + choices.programs; ++seed) {
    SCOPED_TRACE(::testing::Message() << "again: --first " << seed << " --programs 1");
    say_seed_at_alarm(seed);
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

bool read(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto number = number_in(argv[i + 1]);
    if (!number || (name != "--first" && name != "--programs")) return false;
    (name == "--first" ? choices.first : choices.programs) = *number;
  }
  return argc % 2 == 1;
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (tombolo::svp::read(argc, argv)) return RUN_ALL_TESTS();
  std::fprintf(stderr, "usage: %s [--first SEED] [--programs N]\n", argv[0]);
  return 2;
}
