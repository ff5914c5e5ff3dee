// SPDX-License-Identifier: Apache-2.0
// Purpose: tests of pools and programs on a host that has too few threads for them.
// Thread safety: -
#include "svp/scheduler/pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "host/processes/start_thread.h"
#include "host/processes/testing/few_threads.h"
#include "svp/api/include/tombolo/svp.hpp"
#include "svp/language/program.h"

namespace tombolo::svp {
namespace {

using host::testing::FewThreads;
using ::testing::ExitedWithCode;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr const char* no_thread =
    "tombolo: the host has no thread for .*: Resource temporarily unavailable; see ulimit -u";

int sum_of_many(const Place& place) {
  std::atomic<int> sum{0};
  create(place, {.limit = 1000}, [&](Index i) { sum += static_cast<int>(i); }).sync();
  return sum;
}

// VPO3
TEST(FewThreadsTest, APoolHasAsManyWorkersAsThereAreThreadsAndTellsItOnce) {
  for (const bool first : {true, false}) {
    const FewThreads left(2);
    CaptureStderr();
    LocalPlace place(4);
    const std::string said = GetCapturedStderr();
    const std::string sentence = fmt::format(
        "tombolo: the host has no thread for a worker of families: Resource temporarily "
        "unavailable; {}; families run on 2 workers instead of 4 (TOMBOLO_SVP_WORKERS)\n",
        host::no_thread_advice);
    EXPECT_EQ(said, first ? sentence : "");
    EXPECT_EQ(place.workers(), 2u);
    EXPECT_EQ(sum_of_many(place), 999 * 500);
  }
}

TEST(FewThreadsTest, APoolWithoutAnyIsAnErrorThatNamesTheCause) {
  const FewThreads left(0);
  try {
    const LocalPlace place(4);
    FAIL() << "there is a pool";
  } catch (const host::NoThread& lack) {
    EXPECT_EQ(std::string(lack.what()).find("the host has no thread for a worker of families: "),
              0u);
  }
}

// The thread of the program's first family is the first one.
TEST(FewThreadsDeathTest, AProgramWithoutThreadsStopsWithASentence) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (const int number : {0, 1})
    EXPECT_EXIT(
        {
          const FewThreads left(number);
          std::exit(run([](Job&) { return 7; }));
        },
        ExitedWithCode(1), no_thread);
}

TEST(FewThreadsDeathTest, AProgramRunsOnTheThreadsThatThereAre) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  setenv("TOMBOLO_SVP_WORKERS", "4", 1);
  EXPECT_EXIT(
      {
        const FewThreads left(3);
        std::exit(run([](Job&) { return sum_of_many(Place()) == 999 * 500 ? 7 : 8; }));
      },
      ExitedWithCode(7), "families run on 2 workers instead of 4");
  unsetenv("TOMBOLO_SVP_WORKERS");
}

TEST(FewThreadsDeathTest, ATranslatedProgramWithoutThreadsStopsWithASentence) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const FewThreads left(0);
        std::exit(language::run([](long, int, char**) {}, 0, nullptr));
      },
      ExitedWithCode(EXIT_FAILURE), no_thread);
}

}  // namespace
}  // namespace tombolo::svp
